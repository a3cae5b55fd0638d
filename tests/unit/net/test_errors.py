"""Error messages of failing TLS connections, from real handshakes in memory."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from coder.base.clock import FakeClock
from coder.base.errors import CoderError
from coder.net.errors import LONGEST_RETRY_AFTER, NetError, error_from_body, requested_delay, tls_failure
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


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        (" 7 ", 7.0),
        ("", 0.0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 0.0),
        ("-1", 0.0),
        ("1.5", 0.0),
        ("1e9", 0.0),
    ],
)
def test_retry_after_header(header: str, seconds: float) -> None:
    error = error_from_body(503, b'{"message": "busy"}', header)
    assert (error.retry_after, error.is_enveloped) == (seconds, True)
    delay = requested_delay(ExceptionGroup("", [OSError(), ExceptionGroup("", [error])]))
    assert seconds <= delay <= 1.2 * seconds
    wrapped = CoderError("other", "text")
    wrapped.__cause__ = error
    assert seconds <= requested_delay(wrapped) <= 1.2 * seconds


def test_endless_retry_after_is_bounded() -> None:
    assert requested_delay(error_from_body(503, b"", "86400")) <= 1.2 * LONGEST_RETRY_AFTER
