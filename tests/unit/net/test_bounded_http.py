"""Every reader of HTTP refuses heads and trailers of too many lines, because of their cost."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from types import FrameType

import h11
import pytest

from coder.net.blocking_http import HEAD_LINES
from coder.net.bounded_http import BoundedHttp

HEAD = 256 << 10
REQUEST = b"POST / HTTP/1.1\r\nHost: x\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\n"
BEFORE_TRAILERS = b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"


def connection(role: type[h11.CLIENT] | type[h11.SERVER]) -> BoundedHttp:
    made = BoundedHttp(role, max_incomplete_event_size=HEAD)
    if role is h11.CLIENT:
        made.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
        made.send(h11.EndOfMessage())
    return made


def events(reader: BoundedHttp, pieces: Iterator[bytes]) -> list[type]:
    read: list[type] = []
    for piece in pieces:
        reader.receive_data(piece)
        while (event := reader.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
            read.append(type(event))
    return read


def in_one_piece(data: bytes) -> Iterator[bytes]:
    yield data


def bytewise(data: bytes) -> Iterator[bytes]:
    yield from (bytes([letter]) for letter in data)


PLACES = [
    pytest.param(h11.SERVER, REQUEST, id="head of a request"),
    pytest.param(h11.CLIENT, ANSWER, id="head of an answer"),
    pytest.param(h11.CLIENT, b"HTTP/1.1 103 Early Hints\r\n\r\n" + ANSWER, id="head after a hint"),
    pytest.param(h11.SERVER, REQUEST + BEFORE_TRAILERS, id="trailers of a request"),
    pytest.param(h11.CLIENT, ANSWER + BEFORE_TRAILERS, id="trailers of an answer"),
]


@pytest.mark.parametrize("cut", [in_one_piece, bytewise])
@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
@pytest.mark.parametrize(("role", "before"), PLACES)
def test_header_lines_are_limited(role: type[h11.SERVER], before: bytes, end: bytes, cut) -> None:  # type: ignore[no-untyped-def]
    good = before + (b"a: b" + end) * (HEAD_LINES - 1) + end
    assert (h11.Request if role is h11.SERVER else h11.Response) in events(connection(role), cut(good))
    for closed in (end, b""):  # also without its end
        reader = connection(role)
        with pytest.raises(h11.RemoteProtocolError, match="too many header lines") as caught:
            events(reader, cut(before + (b"a: b" + end) * (HEAD_LINES + 2) + closed))
        assert caught.value.error_status_hint == 431
        assert reader.their_state is h11.ERROR


def test_following_message_is_not_counted() -> None:
    """Lines of a body, and of the next request behind empty trailers."""
    lines = b"\n" * 3000
    body = REQUEST + b"Content-Length: 3000\r\n\r\n" + lines
    assert events(connection(h11.SERVER), in_one_piece(body)) == [h11.Request, h11.Data, h11.EndOfMessage]
    chunked = REQUEST + BEFORE_TRAILERS + b"\r\n" + lines
    assert events(connection(h11.SERVER), in_one_piece(chunked))[-1] is h11.EndOfMessage


def test_count_restarts_with_each_message() -> None:
    reader = connection(h11.SERVER)
    for _ in range(3):
        read = events(reader, in_one_piece(REQUEST + b"a: b\r\n" * (HEAD_LINES - 10) + b"\r\n"))
        assert read == [h11.Request, h11.EndOfMessage]
        reader.send(h11.Response(status_code=204, headers=[]))
        reader.send(h11.EndOfMessage())
        reader.start_next_cycle()


@pytest.mark.parametrize(("role", "before"), PLACES)
def test_surplus_lines_cost_nothing(role: type[h11.SERVER], before: bytes) -> None:
    """Work is counted in calls: without the bound there are several for each line."""
    reader = connection(role)
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    with pytest.raises(h11.RemoteProtocolError):
        sys.setprofile(count)
        try:
            events(reader, in_one_piece(before + b"a: b\r\n" * 40_000))
        finally:
            sys.setprofile(None)
    assert 0 < calls < 1000


def test_bytewise_head_costs_linear_time() -> None:
    """Twice as long costs twice as much: searched bytes are not searched again."""

    def cost(size: int) -> float:
        reader = connection(h11.SERVER)
        data = REQUEST + b"a: " + b"b" * size
        began = time.thread_time()
        events(reader, bytewise(data))
        return time.thread_time() - began

    cost(1000)
    # The best of several runs: other load only adds.
    long, short = (min(cost(size) for _ in range(5)) for size in (120_000, 30_000))
    assert long / short < 8  # sixteen would be quadratic
