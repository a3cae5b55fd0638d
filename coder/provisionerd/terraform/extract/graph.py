"""The dependency graph as `terraform graph -type=plan` prints it, and who is nearest to whom in it. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_QUOTED = r'"((?:[^"\\]|\\.)*)"'
_EDGE = re.compile(rf"\s*{_QUOTED} -> {_QUOTED}")
_NODE = re.compile(rf"\s*{_QUOTED} \[label = {_QUOTED}")


@dataclass(frozen=True, slots=True)
class Graph:
    """An edge leads from what needs to what is needed."""

    labels: Mapping[str, str]
    "Label of each node that has one: the resource's address without indexes."
    needs: Mapping[str, tuple[str, ...]]
    needed_by: Mapping[str, tuple[str, ...]]

    def node(self, label: str) -> str | None:
        return next((node for node, found in self.labels.items() if found == label), None)

    def has_label(self, test: Callable[[str], bool]) -> bool:
        return any(test(label) for label in self.labels.values())

    def root_edge(self, source: str, target: str) -> bool:
        """Whether the root module's resource `type.name` points straight at another one."""
        return f"[root] {target} (expand)" in self.needs.get(f"[root] {source} (expand)", ())


def parse_graph(dot: str) -> Graph:
    """Reads DOT. Lines of any other form mean nothing."""
    labels: dict[str, str] = {}
    needs: dict[str, list[str]] = {}
    needed_by: dict[str, list[str]] = {}
    for line in dot.splitlines():
        edge = _EDGE.match(line)
        if edge:
            source, target = _plain(edge[1]), _plain(edge[2])
            needs.setdefault(source, []).append(target)
            needed_by.setdefault(target, []).append(source)
            continue
        node = _NODE.match(line)
        if node:
            labels[_plain(node[1])] = _plain(node[2])
    return Graph(labels, {k: tuple(v) for k, v in needs.items()}, {k: tuple(v) for k, v in needed_by.items()})


def _plain(text: str) -> str:
    return text.replace('\\"', '"').replace("\\\\", "\\")


def nearest(
    graph: Graph, start: str, edges: Mapping[str, tuple[str, ...]], wanted: Callable[[str], bool]
) -> str | None:
    """The label nearest to `start` along `edges` for which `wanted` holds; of several the smallest.

    `start` is a node; it does not count itself.
    """
    seen = {start}
    level = [start]
    while level:
        level = list(dict.fromkeys(node for known in level for node in edges.get(known, ()) if node not in seen))
        seen.update(level)
        labels = (graph.labels.get(node, "") for node in level)
        candidates = sorted(label for label in labels if label and wanted(label))
        if candidates:
            return candidates[0]
    return None
