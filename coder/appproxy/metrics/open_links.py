"""Connections of our own processes, counted: open ones by route, durations, statuses."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from coder.appproxy.metrics.metric_families import Family
from coder.base import garbage

UPGRADED = 101
"""Status of a response after which the connection belongs to the caller."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def method_label(method: str) -> str:
    """Return the method as a label: a request may contain any word as method, and each would be a series for good."""
    return method if method in _METHODS else "other"


class OpenLinks:
    """Connections of our own processes: agents, daemons, clients, proxies."""

    def __init__(self, families: Mapping[str, Family]) -> None:
        self._families = families
        self._open: Counter[str] = Counter()

    def by_route(self) -> Mapping[str, int]:
        return {route: count for route, count in self._open.items() if count}

    @contextmanager
    def counted(self, method: str, route: str) -> Iterator[Callable[[int], None]]:
        """Count one connection; yields the callback for the status of its response. Refused ones never count as
        open."""
        answered = 0
        began = time.perf_counter()

        def answer(status: int) -> None:
            nonlocal answered
            answered = status
            self._open[route] += status == UPGRADED
            self._families["coderd_api_requests_processed_total"].add(str(status), method_label(method), route)

        try:
            yield answer
        finally:
            if answered == UPGRADED:
                self._open[route] -= 1
                garbage.link_ended()
                self._families["coderd_api_websocket_durations_seconds"].observe(time.perf_counter() - began, route)
