"""Processes of a server, and their shares."""

from __future__ import annotations

from itertools import chain

import pytest

from coder.coderd.processes.layout import connections_of, processes_of
from coder.coderd.services.foundation.this_process import DUTIES


@pytest.mark.parametrize("count", [1, 2, 8])
def test_every_duty_has_a_process(count: int) -> None:
    specs = processes_of(count)
    assert [spec.slot for spec in specs] == list(range(len(specs)))
    duties = list(chain.from_iterable(spec.duties for spec in specs))
    assert set(duties) == DUTIES
    assert duties.count("http") == count
    assert all(duties.count(duty) == 1 for duty in DUTIES - {"http"})


def test_only_process_of_daemons_retires() -> None:
    assert {spec.name for spec in processes_of(2) if spec.retires} == {"loops"}


@pytest.mark.parametrize(("count", "limit"), [(2, 10), (4, 10), (3, 30), (16, 100)])
def test_connections_stay_within_limit(count: int, limit: int) -> None:
    shares = [connections_of(spec, count, limit) for spec in processes_of(count)]
    assert min(shares) >= 1
    assert sum(shares) <= max(limit, len(shares))
