"""Every process that dials retries with back-off, or ends with a message, whatever a middlebox answers.

The rows are statuses with a page, JSON of other programs, and answers that are cut, malformed or no HTTP. The columns
are the functions that dial: the agent's connection (a dev container's agent is the same program), its wait for an
owner, the daemon, the workspace proxy's registration and coordination, a user's link (also the command server's), and
commands. `test_answers_of_others.py` has the details of a few rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
import trio

from coder.agent.agent import AgentRole
from coder.agent.config import AgentConfig
from coder.agent.prebuild_claim import wait_until_claimed
from coder.base import log, retry
from coder.base.errors import CoderError
from coder.base.secret import Secret
from coder.cli.provisioning.provisioner_daemons import _DaemonCredentials
from coder.client.link import FINAL_STATUSES, open_link
from coder.client.logs import follow_agent_logs
from coder.coderd.config.settings import ServerConfig
from coder.net import errors
from coder.net.errors import HttpError, NetError
from coder.net.policy import DialPolicy
from coder.net.websocket import connect_websocket
from coder.provisionerd.config import DaemonConfig
from coder.provisionerd.daemon import _FATAL, run_daemon
from coder.rpc.session import Session, open_session
from coder.tailnet.controller import open_controller
from coder.tailnet.reconnect import keep_coordinated
from coder.wsproxy.config import ProxyConfig
from coder.wsproxy.primary import Primary
from coder.wsproxy.registration import Registration
from tests.kit.programs.command_line import run_cli
from tests.kit.stand_ins.scripted_http_servers import OddServer, odd_server, reply
from tests.unit.cli.test_odd_answers import flawed_answer
from tests.unit.conformance.test_answers_of_others import ended_by, wait_until

PAGE = "<html><head><title>Sign in</title></head><body><h1>Please sign in</h1></body></html>"
STATUSES = [200, 204, 301, 302, 303, 307, 308, 400, 401, 402, 403, 404, 405, 407, 408, 410, 413, 421, 426, 429, 431]
STATUSES += [451, 500, 501, 502, 503, 504, 511, 520, 599, 999]
OTHERS_JSON = '{"error": "upstream", "code": 7}'
LOOP = "Location: /login?next=/\r\n"
ANSWERS: dict[str, bytes] = {
    **{f"{status} page": reply(PAGE, status=f"{status} Said", kind="text/html") for status in STATUSES},
    **{f"{status} JSON": reply(OTHERS_JSON, status=f"{status} Said") for status in (200, 401, 403, 404, 500, 503)},
    **{f"{status} empty": reply("", status=f"{status} Said") for status in (200, 401, 403, 404, 500, 503)},
    "redirect loop": f"HTTP/1.1 302 Found\r\n{LOOP}Content-Length: 0\r\n\r\n".encode(),
    "sign-in with a challenge": b'HTTP/1.1 401 X\r\nWWW-Authenticate: Basic realm="x"\r\nContent-Length: 0\r\n\r\n',
    "retry later": b"HTTP/1.1 429 X\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n",
    "nothing": b"",
    "cut head": b"HTTP/1.1 502 Bad Ga",
    "cut body": b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 5000\r\n\r\n<html>",
    "cut success": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n{",
    "cut chunk": b"HTTP/1.1 502 Bad Gateway\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nabc",
    "no chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "long head": b"HTTP/1.1 503 X\r\nX-A: " + b"a" * 200_000 + b"\r\n\r\n",
    "latin-1 head": b"HTTP/1.1 503 Verf\xfcgbar\r\nX-A: \xfc\r\nContent-Length: 0\r\n\r\n",
    "no reason": b"HTTP/1.1 503\r\nContent-Length: 0\r\n\r\n",
    "status 000": b"HTTP/1.1 000 X\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.0": b"HTTP/1.0 502 Bad Gateway\r\n\r\n<html>",
    "HTTP/0.9": b"<html>Bad Gateway</html>",
    "compressed": b"HTTP/1.1 503 X\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\n\x1f\x8bgarbage",
    "SSH": b"SSH-2.0-OpenSSH_9\r\n",
    "TLS alert": b"\x15\x03\x01\x00\x02\x02\x46",
    "informational": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 502 X\r\nContent-Length: 0\r\n\r\n",
    "endless informational": b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000,
    "another upgrade": b"HTTP/1.1 101 X\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\nxxxx",
}
OPENED = "opened and closed"
"Row of a middlebox that accepts the WebSocket for a server that is down, and closes it."
ANSWERS[OPENED] = reply("[7]")
TRIES = 3
AGENT = UUID("00000000-0000-4000-8000-000000000001")
COMMANDS = ["list", "ssh w true", "external-auth access-token github", "gitssh -- git@host x", "templates list"]


@pytest.fixture(params=ANSWERS)
def answer(request: pytest.FixtureRequest) -> bytes:
    return ANSWERS[request.param]


@pytest.fixture
def server(answer: bytes) -> Iterator[OddServer]:
    with odd_server(patience=10**9) as server:
        server.answer, server.upgrades = lambda _method, _path: answer, answer == ANSWERS[OPENED]
        yield server


@pytest.fixture
def delays(monkeypatch: pytest.MonkeyPatch) -> dict[int, list[float]]:
    """Record the pauses between retries by their back-off; they take no time here."""
    taken: dict[int, list[float]] = {}
    ask = retry.Backoff.next_delay

    def next_delay(self: retry.Backoff, attempt: float = 0.0) -> float:
        taken.setdefault(id(self), []).append(self._delay)  # varied by up to a half, delays need not grow
        ask(self, attempt)
        return 0.0

    monkeypatch.setattr(retry.Backoff, "next_delay", next_delay)
    monkeypatch.setattr(errors, "LONGEST_RETRY_AFTER", 0.0)
    return taken


def grow(delays: dict[int, list[float]]) -> bool:
    return any(
        len(taken) >= TRIES and all(before < after for before, after in pairwise(taken[: TRIES - 1]))
        for taken in delays.values()
    )


class Logged:
    """Lines of this process's log during the block, each with its error."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def sink(self, _level: Any, _at: Any, _name: str, message: str, fields: dict[str, Any]) -> None:
        self.lines.append(f"{message}: {fields.get('error', fields.get('reason'))}")

    def reasons(self, beginning: str) -> list[str]:
        return [line.partition(": ")[2] for line in self.lines if line.startswith(beginning)]


def dials(server: OddServer, path: str) -> int:
    return sum(path in asked for _, asked in server.asked)


async def test_a_dial_raises_one_reason(server: OddServer) -> None:
    if server.upgrades:
        async with await connect_websocket(DialPolicy(server.url), "/x") as socket:
            assert [await socket.receive_message(), await socket.receive_message()] == ["7", None]
        return
    with pytest.raises((HttpError, NetError)) as refused:
        await connect_websocket(DialPolicy(server.url), "/api/v2/workspaceagents/me/rpc")
    assert str(refused.value).strip() and "\0" not in str(refused.value)


async def test_agent_retries(server: OddServer, delays: dict[int, list[float]], tmp_path: Path) -> None:
    policy, logged = DialPolicy(server.url, token=Secret("x")), Logged()
    agent = AgentRole(AgentConfig(policy, Secret("x"), tmp_path, tmp_path, executable="coder", socket_enabled=False))
    beginning = "the connection to the server closed; redialling"
    with log.also(logged.sink):
        async with ended_by(agent.run):
            await wait_until(lambda: len(logged.reasons(beginning)) >= TRIES and grow(delays))
    assert all(reason not in {"", "None"} for reason in logged.reasons(beginning))
    assert not logged.reasons("the server does not accept this agent's token")


async def test_wait_for_owner_goes_on(server: OddServer, delays: dict[int, list[float]]) -> None:
    ended: list[bool] = []

    async def wait() -> None:
        ended.append(await wait_until_claimed(DialPolicy(server.url, token=Secret("x"))))

    async with ended_by(wait):
        await wait_until(lambda: ended or (dials(server, "/reinit") >= TRIES and grow(delays)))
    assert not ended


@pytest.mark.parametrize("psk", ["psk", ""], ids=["psk", "token"])
async def test_daemon_retries_or_explains(
    server: OddServer, answer: bytes, delays: dict[int, list[float]], tmp_path: Path, psk: str
) -> None:
    credentials = _DaemonCredentials(DialPolicy(server.url), "default", "d", {}, Secret(""), Secret(psk))
    ends: list[CoderError] = []

    async def daemon() -> None:
        try:
            await run_daemon(credentials.connect, DaemonConfig(name="d", work_dir=tmp_path / "work"), {})
        except CoderError as error:
            ends.append(error)

    async with ended_by(daemon):
        await wait_until(
            lambda: ends or (max(dials(server, "/serve"), dials(server, "/users/me")) >= TRIES and grow(delays))
        )
    assert bool(ends) is (status_of(answer) in _FATAL and not server.upgrades)


async def test_proxy_registers_again(server: OddServer, delays: dict[int, list[float]]) -> None:
    config = ProxyConfig(server.url, Secret("x"), ServerConfig(access_url="http://sydney.test"))
    logged = Logged()
    async with Primary(server.url, Secret("x")) as primary:
        registration = Registration(primary, config)
        with log.also(logged.sink):
            async with ended_by(lambda: registration.keep(lambda _answer: None)):
                await wait_until(lambda: len(server.asked) >= TRIES and grow(delays))
        assert registration.problem
    assert all(logged.reasons("the proxy could not be registered, retrying"))


class _Node:
    """Mesh node without a relay."""

    self_info = SimpleNamespace(preferred_derp=0)

    def self_changed(self) -> Any:
        return trio.open_memory_channel[None](0)[1]


async def test_coordination_is_tried_again(server: OddServer, delays: dict[int, list[float]]) -> None:
    def connect(_resume_token: str) -> Any:
        return _Dial(DialPolicy(server.url))

    node: Any = _Node()
    async with (
        open_controller(node, "source", number=1) as controller,
        ended_by(lambda: keep_coordinated(controller, connect)),
    ):
        await wait_until(lambda: dials(server, "/coordinate") >= TRIES and grow(delays))


class _Dial:
    def __init__(self, policy: DialPolicy) -> None:
        self._policy = policy
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Session:
        socket = await connect_websocket(self._policy, "/api/v2/workspaceproxies/me/coordinate")
        return await self._stack.enter_async_context(open_session(socket, "client"))

    async def __aexit__(self, *failure: Any) -> None:
        await self._stack.__aexit__(*failure)


async def test_link_retries_or_explains(server: OddServer, answer: bytes, delays: dict[int, list[float]]) -> None:
    whole = flawed_answer("whole", 0)
    server.answer = lambda method, path: answer if "/coordinate" in path else whole(method, path)
    ends: list[CoderError] = []

    async def link() -> None:
        try:
            async with open_link(DialPolicy(server.url, token=Secret("x")), AGENT, direct=False):
                await trio.sleep_forever()
        except* CoderError as group:
            ends.extend(item for item in group.exceptions if isinstance(item, CoderError))

    async with ended_by(link):
        await wait_until(lambda: ends or (dials(server, "/coordinate") >= TRIES and grow(delays)))
    assert bool(ends) is (status_of(answer) in FINAL_STATUSES)


@pytest.mark.parametrize("command", COMMANDS)
async def test_command_ends_with_reason(server: OddServer, command: str, tmp_path: Path) -> None:
    token = "00000000-0000-4000-8000-000000000000"
    env = {"CODER_URL": server.url, "CODER_SESSION_TOKEN": token, "CODER_AGENT_URL": server.url}
    with trio.fail_after(60):
        result = await run_cli(command.split(), home=tmp_path, env=env | {"CODER_AGENT_TOKEN": token})
    assert result.code not in {0, None}, result.stdout
    assert "error: " in result.stderr and "Traceback" not in result.stderr, result.stderr
    assert "internal error" not in result.stderr and "coder login" not in result.stderr


def status_of(answer: bytes) -> int:
    """Return the status; 0 for an answer that has none."""
    words = answer.split(b"\r\n\r\n")[0].split(b" ", 2)
    is_whole = answer.startswith(b"HTTP/1.") and b"\r\n\r\n" in answer and len(words) > 1
    return int(words[1][:3]) if is_whole else 0


async def test_log_follower_outlasts_restart(delays: dict[int, list[float]]) -> None:
    """`coder create` follows a build while the server restarts behind a proxy."""
    line = {"id": 1, "created_at": "2026-01-06T09:00:00Z", "output": "one", "level": "info", "source_id": str(AGENT)}
    refusals = [ANSWERS[name] for name in ("502 page", "404 page", "503 JSON", "cut head")]
    with odd_server(patience=10**9) as server:

        def answer(method: str, _path: str) -> bytes:
            if method != "GET":
                return ANSWERS["404 page"]
            server.upgrades = not refusals
            return refusals.pop(0) if refusals else reply(json.dumps([line]))

        server.answer = answer
        seen = [item.output async for item in follow_agent_logs(DialPolicy(server.url, token=Secret("x")), AGENT)]
    assert seen == ["one"] and not refusals


async def test_log_follower_ends_when_refused() -> None:
    with odd_server() as server:
        server.answer = lambda _method, _path: reply('{"message": "Not yours."}', status="403 Forbidden")
        with pytest.raises(HttpError, match="Not yours"):
            await anext(follow_agent_logs(DialPolicy(server.url, token=Secret("x")), AGENT))


@pytest.mark.parametrize(("seconds", "is_reset"), [(0.0, False), (0.9, False), (1.1, True), (100.0, True)])
def test_lasting_connection_resets_backoff(seconds: float, is_reset: bool) -> None:
    backoff = retry.Backoff(0.25, 10.0, jitter=0.0)
    assert [backoff.next_delay(), backoff.next_delay()] == [0.25, 0.5]
    backoff.record_connection(seconds)
    assert backoff.next_delay() == (0.25 if is_reset else 1.0)
