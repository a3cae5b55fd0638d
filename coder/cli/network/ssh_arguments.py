"""Values of `coder ssh` that are parsed before it starts a workspace."""

from __future__ import annotations

from coder.base.errors import CoderError
from coder.base.quoted import quoted


def environment_pair(text: str) -> tuple[str, str]:
    """Parse `name=value`. Raise CoderError."""
    name, equals, value = text.partition("=")
    if not equals:
        raise CoderError("bad_env", f"--env {quoted(text)} must have the form name=value")
    return name, value


def remote_forward(text: str) -> tuple[str, str]:
    """Parse `remote_port:local_address:local_port` or `/remote.sock:/local.sock`."""
    if text.startswith("/"):
        listen, colon, target = text.partition(":")
    else:
        listen, colon, target = text.partition(":")
        if not _is_port(listen) or not _is_port(target.rpartition(":")[2]):
            colon = ""
    if not colon or not target:
        raise CoderError(
            "remote_forward", f"invalid remote forward {quoted(text)}", "Write remote_port:local_address:local_port."
        )
    return listen, target


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535
