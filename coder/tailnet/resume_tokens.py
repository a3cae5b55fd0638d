"""How a client shows the token that brings its peer id back (docs/protocol/coordination.md).

Lives here: what is said when dialling. Asking for new tokens is the controller's; making and
checking them the server's.
"""

from __future__ import annotations

import base64
import json

RESUME_HEADER = "Coder-Resume-Token"
"""Ours: where a resume token is shown to a server that gave one bound to our session. Others read the address."""


def show_resume_token(path: str, token: str) -> tuple[str, list[tuple[str, str]]]:
    """The path and headers to dial with. A token that any bearer may use is read from the address alone (upstream)."""
    if not token:
        return path, []
    if _is_bound(token):
        return path, [(RESUME_HEADER, token)]
    return f"{path}&resume_token={token}", []


def _is_bound(token: str) -> bool:
    """Whether its claims (RFC 7515, unverified: we only pass it on) name a session."""
    payload = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, RecursionError):
        return False
    return isinstance(claims, dict) and "session" in claims
