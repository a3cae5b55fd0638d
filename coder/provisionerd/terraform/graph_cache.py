"""Graphs of templates seen lately, so that a build need not run `terraform graph` again.

The graph follows from the template alone, but for one thing: resources that are only in the state (the template lost
them) appear in it, too. A kept graph is used only when it names every managed resource of the state.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import OrderedDict

LIMIT = 64
MAX_GRAPH = 1024 * 1024
"Bytes; a bigger graph is not kept."
_INDEX = re.compile(r"\[[^\[\]]*\]")


def template_key(*parts: bytes) -> bytes:
    """What tells one set of template and module files from another."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


class GraphCache:
    """The graphs used last. Belongs to one executor, whose terraform is always the same."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, str] = OrderedDict()

    def find(self, key: bytes, state: bytes) -> str:
        """The graph, when it is good for this state too; else nothing."""
        dot = self._kept.get(key, "")
        if not dot or not all(address in dot for address in _addresses(state)):
            return ""
        self._kept.move_to_end(key)
        return dot

    def keep(self, key: bytes, dot: str) -> None:
        if not dot or len(dot) > MAX_GRAPH:
            return
        self._kept[key] = dot
        self._kept.move_to_end(key)
        while len(self._kept) > LIMIT:
            self._kept.popitem(last=False)


def _addresses(state: bytes) -> set[str]:
    """Managed resources of a state as a graph names them."""
    if not state:
        return set()
    try:
        resources = json.loads(state).get("resources", [])
        return {
            ".".join(filter(None, [_INDEX.sub("", one.get("module", "")), one["type"], one["name"]]))
            for one in resources
            if one.get("mode") == "managed"
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return {"\x00"}  # unreadable: no graph names that
