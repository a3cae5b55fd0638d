"""A byte stream carried by ordinary HTTP requests: the last transport, for networks that strip or refuse every upgrade.

Lives here: the headers both sides use, the buffer of bytes not yet acknowledged, and the client. The server is
`coderd/services/network/carried_streams.py`. The protocol is ours, no other server has it
(docs/protocol/carried-streams.md).

`POST <path of the link>` with `Coder-Carry: <protocol>` opens, `GET /derp/streams/<id>` transfers bytes down (as a
stream, or as long polls when a middlebox holds answers back), `POST` to the same path transfers bytes up. Every request
names its start offset, so an interrupted one is simply repeated: nothing is lost or duplicated.

It is dearer for the server than an upgrade. A busy server answers upgrades late, because agents wait there in order: it
must not turn its clients to carried streams, which would keep it busy (`may_be_stripped`).
"""

from __future__ import annotations

import base64
import math
import secrets
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace

import trio

from coder.base.errors import CoderError
from coder.net.errors import HttpError, NetError, UnansweredUpgrade
from coder.net.http1 import Headers, HttpClient, upgrade
from coder.net.masking import masked
from coder.net.policy import DialPolicy

PLAIN_TIMEOUT = 2.0
"""Seconds in which a server answers a small request if only upgrades to it are lost. A busy server takes longer."""
CHEAP_UPGRADE_TIMEOUT = 2.0
"""Seconds in which it answers an upgrade that is cheap for it, after the connection."""
OVERLOADED = "Coder-Overloaded"
"Header of `/latency-check` while the server closes or refuses connections for want of room."
_PLAIN_LIMIT = 64 << 10
_ANY_STATUS = tuple(range(200, 600))
_RELAY_PATH = "/derp"
"""Every server upgrades requests for its relay, of strangers, too, and nothing waits for a turn there."""
CARRY = "Coder-Carry"
"Header of the opening request: the protocol that would have been the target of the upgrade."
CARRIER = "Coder-Carrier"
"Header of the opening answer: the stream's id, which also authorizes its use."
OFFSET = "Coder-Carrier-Offset"
RECEIVED = "Coder-Carrier-Received"
"Number of bytes from the server that the client has: the server may discard them."
ENDED = "Coder-Carrier-End"
WAIT = "Coder-Carrier-Wait"
"Seconds of silence after which the server should end an answer; a proxy must not do it first."
MODE = "Coder-Carrier-Mode"
"`stream` or `poll`."
STREAMS = "/derp/streams/"
MARK = b"."
"The first byte of every answer: proves that answers are forwarded while they are incomplete."

WINDOW = 1 << 20
"Bytes either side buffers for the other."
PIECE = 256 << 10
"Bytes of one request upwards, and between two acknowledgements downwards."
FIRST_WAIT = 25.0
"Below the 30 s of the most impatient proxies in wide use."
LEAST_WAIT = 1.0
MARK_TIMEOUT = 3.0
SLACK = 10.0
"Seconds an answer may be late before its connection counts as dead."
POST_TIMEOUT = 30.0
PAUSES = (0.0, 0.1, 0.5, 2.0, 5.0)
"Seconds before each attempt of a request."


class RetransmitBuffer:
    """Bytes in flight, kept until the other side has acknowledged them."""

    __slots__ = ("_data", "start")

    def __init__(self) -> None:
        self._data = bytearray()
        self.start = 0
        "Offset of the first buffered byte."

    @property
    def end(self) -> int:
        """Offset after the last byte."""
        return self.start + len(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._data += data

    def read(self, offset: int, limit: int) -> bytes:
        """Return up to `limit` bytes from `offset` on. Raises ValueError when they were discarded or never written."""
        if not self.start <= offset <= self.end:
            raise ValueError(f"offset {offset} is outside of {self.start}..{self.end}")
        at = offset - self.start
        return bytes(self._data[at : at + limit])

    def acknowledge(self, offset: int) -> None:
        """Discard everything before `offset`. Raises ValueError when that was never written."""
        if offset > self.end:
            raise ValueError(f"offset {offset} was never written")
        if offset > self.start:
            del self._data[: offset - self.start]
            self.start = offset


class CarriedStream(trio.abc.HalfCloseableStream):
    """The client's end; created by `connect_carried`. Requests are sent when the caller sends or receives."""

    def __init__(self, policy: DialPolicy, ident: str) -> None:
        self._http = HttpClient(policy)
        self._path = STREAMS + ident
        self._sent = self._received = self._acknowledged = 0
        self._buffer = b""
        self._learned, self._origin = policy.learned, policy.origin.netloc
        self._polls = self._learned.holds_back(self._origin, trio.current_time())
        self._wait = FIRST_WAIT
        self._answer: AsyncExitStack | None = None
        self._chunks: AsyncIterator[bytes] | None = None
        self._marked = False
        self._heard_at = 0.0
        self._failures = 0
        self._is_ended = self._is_broken = self._is_closed = False
        self._send_lock = trio.Lock()

    @property
    def mode(self) -> str:
        """Mode in which bytes are transferred down: `stream` or `poll`."""
        return "poll" if self._polls else "stream"

    # ---- up

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        view = memoryview(data)
        async with self._send_lock:
            for start in range(0, len(view), PIECE):
                await self._post(bytes(view[start : start + PIECE]))
        if not view:
            await trio.lowlevel.checkpoint()

    async def wait_send_all_might_not_block(self) -> None:
        async with self._send_lock:
            pass

    async def send_eof(self) -> None:
        async with self._send_lock:
            await self._post(b"", ended=True)

    async def _post(self, body: bytes, *, ended: bool = False) -> None:
        self._check_open()
        headers = [(OFFSET, str(self._sent)), ("Content-Type", "application/octet-stream")]
        if ended:
            headers.append((ENDED, "1"))
        failure: Exception | None = None
        for pause in PAUSES:
            await trio.sleep(pause)
            received = self._received
            try:
                fields = [*headers, (RECEIVED, str(received))]
                await self._http.request(
                    "POST", self._path, body=body, headers=fields, expect=(204,), timeout=POST_TIMEOUT
                )
            except HttpError as error:
                failure = error
                if error.status in {404, 409, 410}:
                    break
            except NetError as error:
                failure = error
            except BaseException:
                # After a cancellation the request may have arrived or not: nothing can follow it.
                self._is_broken = self._is_broken or bool(body)
                raise
            else:
                self._sent += len(body)
                self._acknowledged = max(self._acknowledged, received)
                return
        self._is_broken = True
        raise trio.BrokenResourceError(f"the carried stream broke: {failure}") from failure

    def _check_open(self) -> None:
        if self._is_closed:
            raise trio.ClosedResourceError
        if self._is_broken:
            raise trio.BrokenResourceError("the carried stream is broken")

    # ---- down

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        while not self._buffer:
            if self._is_closed:
                raise trio.ClosedResourceError
            if self._is_ended:
                return b""
            await self._fetch()
        size = len(self._buffer) if max_bytes is None else max_bytes
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data

    async def _fetch(self) -> None:
        """Make one step towards more bytes: a request, a piece of its answer, or a pause after a failure."""
        began = self._heard_at
        try:
            if self._chunks is None:
                began = trio.current_time()
                await self._ask()
                return
            with trio.fail_after(self._wait + SLACK if self._marked else self._mark_timeout()):
                chunk = await anext(self._chunks, None)
        except trio.TooSlowError:
            await self._drop()
            if not self._marked and not self._polls:
                self._polls = True  # a middlebox collects answers: request short ones
                self._learned.on_held_back(self._origin, trio.current_time())
                return
            await self._failed(None)
        except (NetError, HttpError) as error:
            silence = trio.current_time() - began
            was_idle = self._marked and silence > LEAST_WAIT
            await self._drop()
            if was_idle:
                # Cut during silence: from now on request that answers end before that time.
                self._wait = max(LEAST_WAIT, min(self._wait, silence / 2))
            await self._failed(error)
        except BaseException:
            await self._drop()
            raise
        else:
            await self._process_chunk(chunk)

    def _mark_timeout(self) -> float:
        return self._wait + SLACK if self._polls else MARK_TIMEOUT

    async def _ask(self) -> None:
        headers = [
            (OFFSET, str(self._received)),
            (WAIT, f"{self._wait:g}"),
            (MODE, self.mode),
            ("Cache-Control", "no-store"),
        ]
        stack = AsyncExitStack()
        try:
            with trio.fail_after(self._mark_timeout()):
                request = self._http.stream("GET", self._path, headers=headers, head_timeout=math.inf)
                answer = await stack.enter_async_context(request)
        except BaseException:
            with trio.CancelScope(shield=True):
                await stack.aclose()
            raise
        if answer.status == 410:
            self._is_ended = True
        if answer.status != 200:
            with trio.CancelScope(shield=True):
                await stack.aclose()
            if self._is_ended:
                return
            if answer.status in {404, 409}:
                self._is_broken = True
                raise trio.BrokenResourceError("the server has forgotten the carried stream")
            raise HttpError(answer.status, "the carried stream was not continued")
        chunks = answer.chunks()
        await stack.enter_async_context(aclosing(chunks))
        self._answer, self._chunks, self._marked = stack, chunks, False
        self._heard_at = trio.current_time()

    async def _process_chunk(self, chunk: bytes | None) -> None:
        if chunk is None:
            self._failures = 0
            stack, self._answer, self._chunks = self._answer, None, None
            if stack is not None:
                await stack.aclose()
            return
        self._failures = 0
        self._heard_at = trio.current_time()
        if not self._marked and chunk:
            self._marked = True
            chunk = chunk[len(MARK) :]
        self._buffer += chunk
        self._received += len(chunk)
        if self._received - self._acknowledged > PIECE:
            await self._post(b"")

    async def _failed(self, error: Exception | None) -> None:
        self._failures += 1
        if self._failures >= len(PAUSES):
            self._is_broken = True
            raise trio.BrokenResourceError("the carried stream broke") from error
        await trio.sleep(PAUSES[self._failures])

    async def _drop(self) -> None:
        """Discard the answer in progress; the next one begins after its last whole piece."""
        stack, self._answer, self._chunks = self._answer, None, None
        if stack is None:
            return
        with trio.CancelScope(shield=True):
            try:
                # An error inside makes the client close the connection instead of reusing it.
                await stack.__aexit__(trio.BrokenResourceError, trio.BrokenResourceError(), None)
            except trio.BrokenResourceError:
                pass  # the value just put in

    # ---- end

    async def aclose(self) -> None:
        if self._is_closed:
            await trio.lowlevel.checkpoint()
            return
        self._is_closed = True
        await self._drop()
        try:
            with trio.move_on_after(2.0):
                await self._http.request("DELETE", self._path, expect=(204, 404, 410))
        except (NetError, HttpError):
            pass  # the server forgets a stream without requests
        finally:
            with trio.CancelScope(shield=True):
                await self._http.aclose()


async def connect_carried(
    policy: DialPolicy, path: str, protocol: str, *, headers: Headers = ()
) -> tuple[CarriedStream, dict[str, str]]:
    """Open the link at `path` without any upgrade. Return (stream, headers of the answer).

    Raises HttpError when the server refuses (as it would have refused the upgrade, or because it is another
    implementation), NetError when it cannot be reached.
    """
    # The nonce keeps caches and repeating proxies from answering for the server.
    fields = [(CARRY, protocol), ("Cache-Control", "no-store"), ("Coder-Carrier-Nonce", secrets.token_hex(8)), *headers]
    async with HttpClient(policy, keep=0) as http:
        answer = await http.request("POST", path, headers=fields, timeout=POST_TIMEOUT)
    ident = answer.headers.get(CARRIER.lower(), "")
    if len(ident) != 32 or not ident.isalnum():
        raise NetError("protocol", f"{masked(policy.url)} does not carry streams over plain requests")
    return CarriedStream(policy, ident), dict(answer.headers)


async def may_be_stripped(
    policy: DialPolicy, refused: HttpError | NetError, protocol: str = "websocket", *, is_next_dear: bool = True
) -> bool:
    """Return whether a middlebox may have broken an upgrade to a protocol: worth a try of the next transport.

    An upgrade without an answer proves nothing: the server may be busy. It counts if plain requests are answered, and
    an upgrade that is cheap for the server is not. The same holds for a connection that was closed in place of an
    answer, as by a server that stops or has no room, and for the page of a proxy that reached none (a status from 500
    on). If the next transport is dear for the server (`is_next_dear`: it is no upgrade), a plain request must be
    answered afterwards, too, without the sign of an overload. A proxy that says when to come again is busy, too.
    """
    if isinstance(refused, HttpError):
        if refused.is_enveloped or refused.retry_after:
            return refused.status == 426
        if refused.status < 500:
            return True
    elif not isinstance(refused, UnansweredUpgrade) and refused.code != "protocol":
        return False
    async with HttpClient(replace(policy, token=None)) as client:
        answers = dict[str, bool]()

        async def ask(name: str, question: Awaitable[bool], stripped: bool) -> None:
            answers[name] = await question is stripped
            if not answers[name]:
                nursery.cancel_scope.cancel()

        # Together, because a connection attempt has ten seconds, and a far server needs one for each round.
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "plain", _answers_plainly(client), True)
            nursery.start_soon(ask, "upgrade", _answers_upgrades(policy, protocol), False)
        if len(answers) < 2 or not all(answers.values()):
            return False
        return not is_next_dear or await _answers_plainly(client, before_dear=True)


async def has_room(policy: DialPolicy) -> bool:
    """Return whether the server, or a proxy before it, answers plain requests at once, and shows no overload."""
    async with HttpClient(replace(policy, token=None)) as client:
        return await _answers_plainly(client, before_dear=True)


async def _answers_plainly(client: HttpClient, *, before_dear: bool = False) -> bool:
    """Return whether a plain request is answered in time, and, before something dear, without the sign of an overload:
    for a while, as a client behind a middlebox may not wait for ever."""
    try:
        answer = await client.request(
            "GET",
            "/latency-check",
            headers=[("Cache-Control", "no-store")],
            expect=_ANY_STATUS,
            timeout=PLAIN_TIMEOUT,
            limit=_PLAIN_LIMIT,
        )
    except (CoderError, OSError, trio.BrokenResourceError):
        return False
    if answer.status >= 500:
        return False
    policy = client.policy
    is_overloaded = policy.learned.believes_overload(
        policy.origin.netloc, trio.current_time(), is_shown=OVERLOADED.lower() in answer.headers
    )
    return not (before_dear and is_overloaded)


async def _answers_upgrades(policy: DialPolicy, protocol: str) -> bool:
    """Return whether requests for an upgrade get an answer. A refusal is one: of a server without a relay (404), or
    because too many clients of an address ask this (429). After 426 the upgrade did not get there, nor after the page
    of a proxy that reached no server."""
    fields = [("Upgrade", protocol), ("Connection", "Upgrade")]
    if protocol == "websocket":
        key = base64.b64encode(secrets.token_bytes(16)).decode()
        fields += [("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", key), ("Sec-WebSocket-Protocol", "derp")]
    try:
        stream, answer, _ = await upgrade(replace(policy, token=None), _RELAY_PATH, fields, CHEAP_UPGRADE_TIMEOUT)
    except HttpError as refusal:
        return refusal.status != 426 and (refusal.status < 500 or refusal.is_enveloped)
    except (CoderError, OSError, trio.BrokenResourceError):
        return False
    await trio.aclose_forcefully(stream)
    return answer.get("upgrade", "").lower() == protocol.lower()
