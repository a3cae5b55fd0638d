"""Addresses of external applications: links from a template or an agent, opened on the user's own machine.

The dashboard has the same rule in `features/workspace/app-address.ts`, with the list of programs that receive a key.
"""

from __future__ import annotations

import re

SESSION_TOKEN = "$SESSION_TOKEN"  # noqa: S105 - the words that stand for one
"""Placeholder for a key of the user who opens the address; only the dashboard fills it in."""
# Two characters at least: a single letter is a Windows drive. No leading blanks, which browsers and shells strip.
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):", re.IGNORECASE | re.ASCII)
_RUN_HERE = frozenset({"javascript", "data", "vbscript", "file", "blob", "filesystem", "about", "view-source"})
"""Schemes that run or read with the rights of the user who opens the address."""


def explain_address(url: str) -> str:
    """Return why an address is not an acceptable link; "" when it is."""
    match = _SCHEME.match(url)
    if match is None:
        return "must be the address of another page or program, with its scheme"
    scheme = match[1].lower()
    return f"must not be of the scheme {scheme!r}" if scheme in _RUN_HERE else ""


def explain_made_address(url: str) -> str:
    """Return the same for an address from an agent: a workspace's operator must not receive keys of its visitors."""
    if SESSION_TOKEN in url:
        return f"must not contain {SESSION_TOKEN}: only a template's applications are given a key"
    return explain_address(url)
