"""Dependency graph as `terraform graph -type=plan` prints it, and the nearest-node search. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_QUOTED = r'"((?:[^"\\]|\\.)*)"'
_EDGE = re.compile(rf"\s*{_QUOTED} -> {_QUOTED}")
_NODE = re.compile(rf"\s*{_QUOTED} \[label = {_QUOTED}")


@dataclass(frozen=True, slots=True)
class Graph:
    """Graph whose edges lead from a node to its dependencies."""

    labels: Mapping[str, str]
    "Label of each node that has one: the resource's address without indexes."
    needs: Mapping[str, tuple[str, ...]]
    needed_by: Mapping[str, tuple[str, ...]]

    def node(self, label: str) -> str | None:
        return next((node for node, node_label in self.labels.items() if node_label == label), None)

    def has_label(self, test: Callable[[str], bool]) -> bool:
        return any(test(label) for label in self.labels.values())

    def root_edge(self, source: str, target: str) -> bool:
        """Return whether the root module's resource `type.name` has a direct edge to another one."""
        return f"[root] {target} (expand)" in self.needs.get(f"[root] {source} (expand)", ())


def parse_graph(dot: str) -> Graph:
    """Parse DOT. Lines of any other form are ignored."""
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
    graph: Graph, start: str, edges: Mapping[str, tuple[str, ...]], matches: Callable[[str], bool]
) -> str | None:
    """Return the label nearest to `start` along `edges` that `matches`; of several the smallest.

    `start` is a node and does not count itself.
    """
    seen = {start}
    level = [start]
    while level:
        level = list(dict.fromkeys(node for visited in level for node in edges.get(visited, ()) if node not in seen))
        seen.update(level)
        labels = (graph.labels.get(node, "") for node in level)
        candidates = sorted(label for label in labels if label and matches(label))
        if candidates:
            return candidates[0]
    return None
