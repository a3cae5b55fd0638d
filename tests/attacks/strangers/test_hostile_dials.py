"""An agent and an external provisioner dial a server that answers with anything but the API: one clear error, no token
for another host, and growing delays."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from coder.agent.reconnect_delays import LAST_DELAY, ReconnectDelays
from coder.base.errors import CoderError
from coder.base.secret import Secret
from coder.cli.provisioning.provisioner_daemons import _DaemonCredentials
from coder.net.errors import LONGEST_RETRY_AFTER, error_from_body, requested_delay
from coder.net.policy import DialPolicy
from coder.net.websocket import connect_websocket
from coder.rpc.session import open_session
from tests.attacks.strangers.kinds import Kind, sample
from tests.attacks.strangers.place import HostileApp
from tests.attacks.strangers.tables import cli, edge

TOKEN = "dial-SecretSecretSecret"
LIMIT = 40.0
"Seconds of a dial: an upgrade has fifteen, and a plain request may follow it."
MOST_MEMORY = 200 << 20
KINDS = [one for one in cli.KINDS if one.stage == "answer"]
KINDS += [one for one in edge.KINDS if one.stage == "switch" and one.then != "hold"]
Dial = Callable[[DialPolicy], contextlib.AbstractAsyncContextManager[None]]


@asynccontextmanager
async def agent(policy: DialPolicy) -> AsyncIterator[None]:
    socket = await connect_websocket(policy, "/api/v2/workspaceagents/me/rpc?version=2.10&role=agent")
    try:
        async with open_session(socket, "client", patient=True) as session:
            await session.wait_closed()
            yield
    finally:
        with trio.CancelScope(shield=True):
            await trio.aclose_forcefully(socket)


@asynccontextmanager
async def daemon(policy: DialPolicy) -> AsyncIterator[None]:
    credentials = _DaemonCredentials(policy, "default", "d", {}, Secret(""), Secret(TOKEN))
    async with credentials.connect() as session:
        await session.wait_closed()
        yield


class Dialler:
    """A hostile server, and another one that must not get the token."""

    def __init__(self) -> None:
        self.hostile, self.other = HostileApp(), HostileApp()

    async def run(self, dial: Dial, one: Kind) -> str:
        """Return what is wrong, empty if nothing."""
        self.hostile.pieces = tuple(piece.replace(b"OTHER", b"127.0.0.1:%d" % self.other.port) for piece in one.pieces)
        self.hostile.then = one.then if one.then != "read" else "close"
        self.other.received.clear()
        policy = DialPolicy(f"http://127.0.0.1:{self.hostile.port}", token=Secret(TOKEN), proxies={})
        before = _memory()
        try:
            with trio.fail_after(LIMIT):
                async with dial(policy):
                    pass
        except (CoderError, OSError, trio.BrokenResourceError) as error:
            if len(str(error)) > 40_000 or TOKEN in str(error):
                return f"an error of {len(str(error))} characters, or with the token"
        except Exception as error:  # what a caller does not expect is the finding
            return repr(error)[:300]
        if any(TOKEN.encode() in received for received in self.other.received):
            return "the token went to another server"
        return "" if _memory() - before < MOST_MEMORY else f"took {(_memory() - before) >> 20} MiB"


def _memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.fixture
def dialler() -> Iterator[Dialler]:
    made = Dialler()
    with contextlib.closing(made.hostile), contextlib.closing(made.other):
        yield made


async def _try(dialler: Dialler, dial: Dial, kinds: list[Kind]) -> dict[str, str]:
    return {one.title: wrong for one in kinds if (wrong := await dialler.run(dial, one))}


@pytest.mark.parametrize("dial", [agent, daemon])
async def test_dials_of_hostile_server(dialler: Dialler, dial: Dial) -> None:
    assert await _try(dialler, dial, sample(KINDS, 40)) == {}


@pytest.mark.soak
@pytest.mark.parametrize("dial", [agent, daemon])
async def test_every_dial(dialler: Dialler, dial: Dial) -> None:
    assert await _try(dialler, dial, KINDS) == {}


@pytest.mark.parametrize("value", ["0", "-1", "1e9", "99999999999999999999", "999999999", "nan", "\x1b[2J", "١٢", ""])
def test_absurd_retry_after_is_bounded(value: str) -> None:
    assert 0 <= requested_delay(error_from_body(503, b"", value)) <= LONGEST_RETRY_AFTER * 1.2


def test_long_errors_are_cut() -> None:
    long, row = "m" * 2_000_000, {"field": "f", "detail": "d" * 1000}
    body = json.dumps({"message": long, "detail": long, "validations": [row] * 5000})
    assert len(str(error_from_body(400, body.encode()))) < 200_000
    assert str(error_from_body(400, b'{"message":"short","detail":"d"}')) == "short; d"


def test_attempts_of_ten_minutes_are_few() -> None:
    """A server that refuses at once, and one that accepts and hangs up."""
    for was_served in (False, True):
        delays, now, attempts = ReconnectDelays(), 0.0, 0
        while now < 600:
            attempts += 1
            now += 0.001 + delays.after(now, now + 0.001, was_served=was_served)
        assert attempts < (600 / LAST_DELAY * 2.2 if not was_served else 600), was_served
