"""Transport of the resume token that restores a client's peer id (docs/protocol/coordination.md).

This module covers the dial. The controller requests new tokens; the server issues and verifies them.
"""

from __future__ import annotations

import base64
import json

RESUME_HEADER = "Coder-Resume-Token"
"""Header (ours) for a resume token bound to our session. Other servers read the address."""


def attach_resume_token(path: str, token: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the path and headers to dial with. A bearer token is sent in the address alone, as upstream reads it."""
    if not token:
        return path, []
    if _is_bound(token):
        return path, [(RESUME_HEADER, token)]
    return f"{path}&resume_token={token}", []


def _is_bound(token: str) -> bool:
    """Return whether its claims (RFC 7515, unverified: we only pass it on) name a session."""
    payload = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, RecursionError):
        return False
    return isinstance(claims, dict) and "session" in claims
