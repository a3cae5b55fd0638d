"""Order of versions: an agent replaces itself only with a newer program (`agent/upgrade/upgrader.py`).

Versions are compared as in semver.org 2.0.0 (its rule 11); a text that is no version is never newer.
"""

from __future__ import annotations

import re

_VERSION = re.compile(
    r"v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:-([0-9A-Za-z.-]{1,200}))?(?:\+[0-9A-Za-z.-]{1,200})?", re.ASCII
)
"""Bounded as a whole: Python refuses to parse a number of five thousand digits."""
_Rank = tuple[tuple[int, int, int], bool, list[tuple[bool, int, str]]]


def is_newer(theirs: str, ours: str) -> bool:
    """Return whether a program of version `theirs` is newer than one of version `ours`."""
    new, old = _rank(theirs), _rank(ours)
    return new is not None and old is not None and new > old


def is_version(text: str) -> bool:
    """Return whether a text is a version, with or without a leading v."""
    return _VERSION.fullmatch(text) is not None


def canonical(version: str) -> str:
    """Return a version with a leading v, which texts from outside may omit; other text unchanged."""
    return f"v{version.removeprefix('v')}" if is_version(version) else version


def _rank(version: str) -> _Rank | None:
    match = _VERSION.fullmatch(version)
    if match is None:
        return None
    identifiers = match[4].split(".") if match[4] else []
    # A release comes after its pre-releases; numbers come before words, and fewer identifiers before more.
    parts = [(not word.isdigit(), int(word) if word.isdigit() else 0, word) for word in identifiers]
    return (int(match[1]), int(match[2]), int(match[3])), not identifiers, parts
