"""Which commands a warm process runs. The launcher has the same list of words, so that it does not even ask."""

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
"""First words of commands that are daemons, start programs on the person's terminal or ask for its keyboard by name."""


def is_served(name: str | None, argv: Sequence[str], env: Mapping[str, str]) -> bool:
    """Whether the command `name` of the table may run in a forked process that has no controlling terminal."""
    if env.get("CODER_HEADER_COMMAND") or any(word.startswith("--header-command") for word in argv):
        return False  # somebody else's program, which may ask for a password
    return name is None or name.split(" ")[0] not in NEVER_SERVED
