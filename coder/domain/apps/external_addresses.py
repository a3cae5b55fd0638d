"""Where an external application may lead: a link of a template, or of an agent, opened on somebody's own machine.

The dashboard has the same rule in `features/workspace/app-address.ts`, and there which programs are given a key.
"""

from __future__ import annotations

import re

SESSION_TOKEN = "$SESSION_TOKEN"  # noqa: S105 - the words that stand for one
"""Stands in an address for a key of whoever opens it; only the dashboard fills it in."""
# Two characters at least: one alone is a drive of Windows. Nothing in front, as browsers and shells leave blanks out.
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):", re.IGNORECASE | re.ASCII)
_RUN_HERE = frozenset({"javascript", "data", "vbscript", "file", "blob", "filesystem", "about", "view-source"})
"""What is run or read with the rights of whoever opens it."""


def explain_address(url: str) -> str:
    """Why an address is no link a person can want; "" when it is one."""
    found = _SCHEME.match(url)
    if found is None:
        return "must be the address of another page or program, with its scheme"
    scheme = found[1].lower()
    return f"must not be of the scheme {scheme!r}" if scheme in _RUN_HERE else ""


def explain_made_address(url: str) -> str:
    """The same of one that an agent makes: whoever runs a workspace gets no key of those who look at it."""
    if SESSION_TOKEN in url:
        return f"must not contain {SESSION_TOKEN}: only a template's applications are given a key"
    return explain_address(url)
