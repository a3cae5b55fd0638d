"""Connections of our own processes, counted: how many are open by route, how long they were, how they were answered."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from coder.appproxy.metrics.metric_families import Family

UPGRADED = 101
"""The status of an answer after which a connection belongs to whoever asked."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def shown_method(method: str) -> str:
    """As a label: any word may stand in a request for a method, and each would be a series for ever."""
    return method if method in _METHODS else "other"


class OpenLinks:
    """The connections of our own processes: agents, daemons, clients, proxies."""

    def __init__(self, families: Mapping[str, Family]) -> None:
        self._families = families
        self._open: Counter[str] = Counter()

    def by_route(self) -> Mapping[str, int]:
        return {route: count for route, count in self._open.items() if count}

    @contextmanager
    def counted(self, method: str, route: str) -> Iterator[Callable[[int], None]]:
        """Surrounds one connection; gives what to call with the status of its answer. Refused ones never were open."""
        answered = 0
        began = time.perf_counter()

        def answer(status: int) -> None:
            nonlocal answered
            answered = status
            self._open[route] += status == UPGRADED
            self._families["coderd_api_requests_processed_total"].add(str(status), shown_method(method), route)

        try:
            yield answer
        finally:
            if answered == UPGRADED:
                self._open[route] -= 1
                self._families["coderd_api_websocket_durations_seconds"].observe(time.perf_counter() - began, route)
