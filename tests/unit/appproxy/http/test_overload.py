"""The sign of an overload, which tells clients that an unanswered upgrade has no middlebox as its cause."""

from __future__ import annotations

import os
import time

import pytest

from coder.appproxy.http import overload
from coder.appproxy.http.connection_shares import ConnectionShares
from coder.appproxy.http.overload import OverloadSign

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="shared by forked processes")


ONE, OTHER = "192.0.2.1", "198.51.100.1"


def test_sign_lasts_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    sign, now = OverloadSign(), 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    assert not sign.is_set(ONE)
    sign.set()
    for age, is_set in ((0.0, True), (overload.SHED_FOR - 1, True), (overload.SHED_FOR, False)):
        monkeypatch.setattr(time, "monotonic", lambda age=age: now + age)
        assert (sign.is_set(ONE), sign.is_set(OTHER), sign.is_set("")) == (is_set, is_set, is_set)


def test_address_gets_a_sign_of_its_own() -> None:
    sign = OverloadSign()
    sign.set("2001:db8::1")
    assert (sign.is_set("2001:db8::2"), sign.is_set("2001:db8:0:1::1"), sign.is_set(ONE)) == (True, False, False)


def test_processes_share_the_sign() -> None:
    sign = OverloadSign()
    if not (child := os.fork()):
        try:
            sign.set(ONE)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert (sign.is_set(ONE), sign.is_set(OTHER)) == (True, False)


def test_refused_connections_set_the_sign() -> None:
    shares = ConnectionShares(64)
    admitted = 0
    while shares.admit(ONE, lambda: None) is not None:
        assert not shares.overload.is_set(ONE)
        admitted += 1
    assert admitted == shares.max_per_address
    assert (shares.overload.is_set(ONE), shares.overload.is_set(OTHER)) == (True, False)
    for number in range(shares.max_strangers - admitted):
        assert shares.admit(f"203.0.113.{number}", lambda: None) is not None
    assert shares.admit(OTHER, lambda: None) is not None, "in the place of one of ONE's"
    assert not shares.overload.is_set(OTHER)
    while shares.admit(OTHER, lambda: None) is not None:
        pass
    assert shares.overload.is_set("203.0.113.99"), "all places are taken, and shared evenly"
