"""The sign of an overload, which tells clients that an unanswered upgrade has no middlebox as its cause."""

from __future__ import annotations

import os
import time

import pytest

from coder.appproxy.http import overload
from coder.appproxy.http.connection_shares import ConnectionShares
from coder.appproxy.http.overload import OverloadSign

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="shared by forked processes")


def test_sign_lasts_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    sign, now = OverloadSign(), time.monotonic()
    assert not sign.is_set
    monkeypatch.setattr(overload.time, "monotonic", lambda: now)
    sign.set()
    for age, is_set in ((0.0, True), (overload.SHED_FOR - 1, True), (overload.SHED_FOR, False)):
        monkeypatch.setattr(overload.time, "monotonic", lambda age=age: now + age)
        assert sign.is_set == is_set


def test_processes_share_the_sign() -> None:
    sign = OverloadSign()
    if not (child := os.fork()):
        sign.set()
        os._exit(0)
    os.waitpid(child, 0)
    assert sign.is_set


def test_refused_connections_set_the_sign() -> None:
    shares = ConnectionShares(8)
    admitted = 0
    while not shares.overload.is_set:
        assert admitted <= shares.max_strangers, "more connections than places, and no sign"
        admitted += shares.admit("192.0.2.1", lambda: None) is not None
    assert admitted == shares.max_per_address
