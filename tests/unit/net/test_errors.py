"""Error messages of failing TLS connections, from real handshakes in memory."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from coder.base.clock import FakeClock
from coder.net.errors import NetError, tls_failure
from tests.kit.stand_ins.certificates import Authority

HOST = "coder.example.com"
NOW = FakeClock(datetime(1970, 1, 1, 0, 3, tzinfo=UTC))


def refusal(server: ssl.SSLContext, trusted: str) -> NetError:
    """Return the error of a client that trusts this authority's file."""
    client = ssl.create_default_context(cafile=trusted)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(back, there, server_hostname=HOST), server.wrap_bio(there, back, server_side=True)]
    for end in ends * 2:
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
        except ssl.SSLError as error:
            failure = tls_failure(HOST, error, NOW)
            assert failure is not None and failure.code == "tls"
            return failure
    raise AssertionError("the certificate was accepted")


@pytest.mark.parametrize(("days", "why"), [(10, "not yet valid"), (-10, "has expired")])
def test_wrong_clock_is_reported(days: int, why: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.shift = timedelta(days=days)
    error = refusal(authority.server_context(HOST), authority.file)
    assert "does not hold at 1970-01-01 00:03 UTC, the time of this machine" in error.message and why in error.message
    assert "the clock of this machine" in error.hint and "--client-tls-ca-file" not in error.hint


def test_untrusted_authority_is_reported(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    error = refusal(Authority(tmp_path).server_context(HOST), Authority(tmp_path / "other").file)
    assert "is not trusted" in error.message and "--client-tls-ca-file" in error.hint and "clock" not in error.hint
