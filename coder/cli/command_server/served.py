"""Selection of the commands that the command server runs. The launcher has the same list, so that it does not connect
for others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

NEVER_SERVED = frozenset(
    {
        "agent",
        "completion",
        "dotfiles",
        "gitssh",
        "login",
        "open",
        "provisioner",
        "provisionerd",
        "provisioners",
        "server",
        "terraform-provider",
        "workspace-proxy",
        "wsproxy",
    }
)
"""First words of commands that are daemons, start programs on the terminal, or open /dev/tty."""


def is_served(name: str | None, argv: Sequence[str], env: Mapping[str, str]) -> bool:
    """Return whether the command `name` can run in a forked process without a controlling terminal."""
    if env.get("CODER_HEADER_COMMAND") or any(word.startswith("--header-command") for word in argv):
        return False  # an external program, which can prompt for a password
    return name is None or name.split(" ")[0] not in NEVER_SERVED
