"""Cache of recent templates' graphs, which saves builds from running `terraform graph` again.

The graph depends on the template alone, with one exception: resources that exist only in the state (removed from the
template) appear in it, too. A cached graph is used only when it names every managed resource of the state.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import OrderedDict

LIMIT = 64
MAX_GRAPH = 1024 * 1024
"Bytes above which a graph is not cached."
_INDEX = re.compile(r"\[[^\[\]]*\]")


def template_key(*parts: bytes) -> bytes:
    """Return a key that identifies a set of template and module files."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


class GraphCache:
    """LRU cache of graphs. Belongs to one executor, whose terraform is always the same."""

    def __init__(self) -> None:
        self._graphs: OrderedDict[bytes, str] = OrderedDict()

    def find(self, key: bytes, state: bytes) -> str:
        """Return the graph when it is valid for this state too; else ""."""
        dot = self._graphs.get(key, "")
        if not dot or not all(address in dot for address in _addresses(state)):
            return ""
        self._graphs.move_to_end(key)
        return dot

    def store(self, key: bytes, dot: str) -> None:
        if not dot or len(dot) > MAX_GRAPH:
            return
        self._graphs[key] = dot
        self._graphs.move_to_end(key)
        while len(self._graphs) > LIMIT:
            self._graphs.popitem(last=False)


def _addresses(state: bytes) -> set[str]:
    """Return the managed resources of a state as a graph names them."""
    if not state:
        return set()
    try:
        resources = json.loads(state).get("resources", [])
        return {
            ".".join(filter(None, [_INDEX.sub("", resource.get("module", "")), resource["type"], resource["name"]]))
            for resource in resources
            if resource.get("mode") == "managed"
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {"\x00"}  # unreadable: no graph names that
