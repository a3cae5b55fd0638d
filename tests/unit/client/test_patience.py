"""Commands that wait go on through an outage of the server or of its database."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from coder.client import logs
from coder.client.patience import PATIENCE, Patience, aread_patiently, read_patiently
from coder.net.errors import HttpError, NetError, error_from_body, is_own_refusal
from coder.net.policy import DialPolicy

AWAY = error_from_body(503, b'{"message": "The database does not answer.", "detail": "Try again in a moment."}')
OUTAGES = [AWAY, HttpError(502, "unexpected status 502"), NetError("unreachable", "x"), NetError("timeout", "x")]
OTHERS = [
    error_from_body(404, b'{"message": "Resource not found."}'),
    error_from_body(500, b'{"message": "An internal error"}'),
    HttpError(404, "unexpected status 404"),
    NetError("tls", "the certificate of x is not trusted"),
]


@pytest.mark.parametrize("error", OUTAGES, ids=str)
def test_outage_is_waited_for(error: HttpError | NetError) -> None:
    now = [0.0]
    waiting = Patience(lambda: now[0])
    assert waiting.next_delay(error) < 1
    now[0] = PATIENCE
    assert waiting.next_delay(error) > 0
    now[0] += 1
    with pytest.raises(type(error)):
        waiting.next_delay(error)
    waiting.answered()
    assert waiting.next_delay(error) < 1


@pytest.mark.parametrize("error", OTHERS, ids=str)
def test_refusal_is_raised_at_once(error: HttpError | NetError) -> None:
    with pytest.raises(type(error)):
        Patience().next_delay(error)


def test_outage_is_no_refusal() -> None:
    assert not is_own_refusal(AWAY)
    assert is_own_refusal(OTHERS[0])


class Scripted:
    """A client whose requests fail in this order, and then succeed."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.policy = list(errors), DialPolicy("http://x")

    def next(self, *_: Any) -> Any:
        if self.errors:
            raise self.errors.pop(0)
        return "answer"

    async def anext(self, *_: Any) -> Any:
        await trio.lowlevel.checkpoint()
        return self.next()


async def test_reads_are_repeated(monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.abc.Clock) -> None:
    blocking: Any = Scripted(*OUTAGES)
    blocking.request = blocking.next
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    assert read_patiently(blocking, "/x") == "answer" and not blocking.errors
    client: Any = Scripted(*OUTAGES)
    client.request = client.anext
    assert await aread_patiently(client, "/x") == "answer" and not client.errors


class Lines:
    """A stream of a job's log with one line."""

    close_code = 1000

    def __init__(self) -> None:
        self.messages: list[bytes | None] = [b'{"id": 1, "output": "one"}', None]

    async def receive_message(self) -> bytes | None:
        await trio.lowlevel.checkpoint()
        return self.messages.pop(0)

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


async def test_log_is_followed_through_an_outage(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.abc.Clock
) -> None:
    """More attempts than a broken network gets: each is answered that the database is away."""
    script = Scripted(*[AWAY] * 12)

    async def connect(*_: Any, **__: Any) -> Lines:
        await script.anext()
        return Lines()

    monkeypatch.setattr(logs, "connect_websocket", connect)
    lines = [line.output async for line in logs.follow_job_logs(DialPolicy("http://x"), "/logs")]
    assert lines == ["one"] and not script.errors
