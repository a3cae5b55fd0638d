"""No answer of a server causes a traceback or a hang of a command.

Every command of the table runs against answers that are empty, null, of another shape or type, truncated, a web page,
an error, or missing; and against whole answers of the reference with a flaw. Other tests check the results; here a
command must exit with a code and a message.
"""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from coder.cli.core.command import load
from coder.cli.core.command_table import COMMANDS
from coder.cli.core.options import GLOBAL_OPTIONS
from tests.kit.api.api_description import FLAWS, described, success
from tests.kit.programs.command_line import Result, run_cli
from tests.kit.stand_ins.scripted_http_servers import OddServer, Reply, odd_server, reply

NOT_RUN = {
    "agent": "a daemon",
    "server": "a daemon",
    "provisioner start": "a daemon",
    "provisionerd start": "a daemon",
    "workspace-proxy server": "a daemon",
    "terraform-provider": "speaks to terraform, not to a server",
    "server postgres-builtin-serve": "starts a database",
    "server dbcrypt delete": "waits long for its database",
    "bundle": "asks terraform's registry",
    "completion words": "its arguments are the rest of the line",
    "connect exists": "answers by its exit code alone",
    "verify": "reads files and sends no request",
}
"""Commands that run forever, or that send no request."""

OVER_THE_MESH = {
    "ssh",
    "ping",
    "port-forward",
    "speedtest",
    "debug trace",
    "exp rpty",
    "netcheck",
    "support bundle",
    "doctor",
}
"""Commands that dial the workspace after a complete answer, without a time limit."""

ARGUMENTS: dict[str, list[str]] = {
    "exp scaletest create-workspaces": ["-t", "x", "--timeout", "300ms", "--cleanup-timeout", "300ms"],
    "exp scaletest dashboard": ["--job-timeout", "100ms", "--interval", "10s"],
    "autoupdate": ["w", "always"],
    "schedule start": ["w", "9:00AM", "Mon-Fri", "UTC"],
    "schedule stop": ["w", "2h"],
    "schedule extend": ["w", "2h"],
    "ssh": ["w", "true"],
    "port-forward": ["w", "--tcp", "28731:80"],
    "ping": ["w", "-n", "1", "-t", "100ms"],
    "speedtest": ["w", "-t", "1s"],
    "create": ["w", "-t", "x", "-y"],
    "external-workspaces create": ["w", "-t", "x", "-y"],
    "state push": ["w", "file"],
    "secret import": ["file.env"],
    "secret create": ["s", "--value", "v"],
    "secret update": ["s", "--value", "v"],
    "templates push": ["x", "-d", "tpl", "-y"],
    "templates create": ["x", "-d", "tpl", "-y"],
    "templates pull": ["x", "out", "-y"],
    "templates init": ["--id", "scratch", "made"],
    "templates edit": ["x", "--description", "d", "-y"],
    "templates versions promote": ["-t", "x", "--template-version", "x"],
    "users create": ["-u", "x", "-e", "x@example.com", "-p", "Rec0rded-Pass!"],
    "users edit-roles": ["x", "--roles", "x", "-y"],
    "licenses add": ["-l", "x"],
    "notifications custom": ["title", "message"],
    "task create": ["do", "--template", "x"],
    "task send": ["t", "more"],
    "sharing add": ["w", "--user", "x:use"],
    "sharing remove": ["w", "--user", "x"],
    "organizations roles create": ["--stdin", "-y"],
    "organizations roles update": ["--stdin", "-y"],
    "organizations members edit-roles": ["x", "organization-auditor"],
    "completion": ["-s", "bash", "-p"],
    "dotfiles": ["./repo", "-y"],
    "gitssh": ["host", "true"],
    "gitaskpass": ["Username for 'https://x.example': "],
    "workspace-proxy create": ["--name", "x", "--display-name", "x", "--icon", "x"],
    "workspace-proxy edit": ["x", "--display-name", "y"],
    "wireguard add": ["phone"],
    "server restore": ["file"],
    "login": ["--token", "AAAAAAAAAA-BBBBBBBBBBBBBBBBBBBBBB"],
    "rename": ["w", "v"],
    "provisioner jobs cancel": ["6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a11"],
    "server dbcrypt rotate": [],
    "open app": ["w", "x", "--region", "x"],
    "licenses delete": ["1"],
    "external-auth access-token": ["x"],
}

STDIN = {
    "rename": "x\n",
    "organizations roles create": '{"name": "x"}',
    "organizations roles update": '{"name": "x"}',
    **{name: "{}" for name in COMMANDS if name.startswith("organizations settings set ")},
}
CREATES = {"create", "external-workspaces create"}
"""Commands whose workspace must not exist before the command creates it."""

NOT_WHOLE = {
    **{name: "asks the agent's socket, not a server" for name in COMMANDS if name.startswith("exp sync ")},
    "agent install": "needs systemd",
    "dotfiles": "needs git",
    "upgrade": "needs a program that was installed as one file",
    "gitssh": "needs ssh",
    "exp example-error validation": "is there to fail",
    "exp scaletest create-workspaces": "finds no workspace of its test to delete",
    "exp scaletest agents": "finds no workspace of a test",
    "exp scaletest workspace-traffic": "finds no workspace of a test",
    "users activate": "the user is active already",
    **{f"templates rollout {word}": "finds no open rollout" for word in ("next", "stop", "resume", "rollback")},
    "templates rollout start": "requires --template-version",
    "task resume": "the task is active already",
    "vscodessh": "dials a workspace, which tests/unit/cli/network has",
    **{name: "asks a database" for name in COMMANDS if name.startswith("server ") or name == "reset-password"},
}
"""Commands that cannot succeed here with a whole answer, with reasons."""

FAILS_ON_STDOUT = {"external-auth access-token"}
"""Command that exits with 1 and prints the login URL for scripts."""

WIDER = frozenset(
    {
        "all",
        "details",
        "include-expired",
        "include-archived",
        "shared-with-me",
        "show-offline",
        "health",
        "quiet",
        "only-id",
        "only-token",
        "generate-token",
        "extra",
    }
)
"""Flags that make a command read or print more or other parts of an answer."""

ODD: dict[str, Reply] = {
    "null": lambda _m, _p: reply("null"),
    "empty object": lambda _m, _p: reply("{}"),
    "empty list": lambda _m, _p: reply("[]"),
    "list of nothing": lambda _m, _p: reply("[null]"),
    "list of empty objects": lambda _m, _p: reply("[{}]"),
    "a text": lambda _m, _p: reply('"text"'),
    "a number": lambda _m, _p: reply("7"),
    "half of an answer": lambda _m, _p: reply('{"workspaces": [{"id":'),
    "no body": lambda _m, _p: reply(""),
    "not UTF-8": lambda _m, _p: b'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\n"\xff"',
    "a web page": lambda _m, _p: reply("<html><body>Sign in</body></html>", kind="text/html"),
    "500": lambda _m, _p: reply("<html>no</html>", status="500 Internal Server Error", kind="text/html"),
    "500 in JSON": lambda _m, _p: reply('{"message": null, "validations": [null]}', status="500 Internal Server Error"),
    "401": lambda _m, _p: reply('{"message": "no", "detail": 7, "validations": {}}', status="401 Unauthorized"),
    "redirect": lambda _m, _p: reply("", status="302 Found"),
    "nothing": lambda _m, _p: b"",
    "no HTTP": lambda _m, _p: b"SSH-2.0-x\r\n\r\n",
}


def flawed_answer(flaw: str, seed: int, name: str = "") -> Reply:
    chance = random.Random(seed)
    exists = name not in CREATES

    def answer(method: str, path: str) -> bytes:
        nonlocal exists
        exists |= method == "POST"
        if not exists and "/workspace/" in path:
            return reply('{"message": "none"}', status="404 Not Found")
        if path.startswith("/api/v2/files/"):
            return reply("\0" * 1024, kind="application/x-tar")  # an empty archive
        status = success(method, path)
        body = "" if status == 204 else json.dumps(FLAWS[flaw](described(method, path), chance))
        return reply(body, status=f"{status} OK")

    return answer


def arguments(name: str) -> list[str]:
    command = load(name)
    words = ARGUMENTS.get(name, ["x"] * command.min_args)
    asks = any(option.flag == "yes" for option in command.options)
    return [*name.split(), *words, *(["-y"] if asks and "-y" not in words else [])]


def forms(name: str) -> Iterator[list[str]]:
    """Return flags to append to a command line, so that it reads more or other parts of the answer."""
    for option in load(name).options:
        if option.flag == "output":
            yield from (["-o", choice] for choice in option.choices if choice != option.default)
        elif option.flag == "column":
            yield ["-c", ",".join(option.choices)]
        elif option.flag in WIDER:
            yield [f"--{option.flag}"] if option.kind == "bool" else [f"--{option.flag}", "x"]
        elif option.flag == "search":
            yield ["--search", "name:x"]


@pytest.fixture(scope="module")
def server() -> Iterator[OddServer]:
    with odd_server(patience=10**9) as server:
        yield server


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "tpl").mkdir()
    (tmp_path / "tpl" / "main.tf").write_text('resource "terraform_data" "x" {}\n')
    (tmp_path / "file").write_text("{}")
    (tmp_path / "file.env").write_text("A=b\n")
    return tmp_path


async def run(name: str, words: list[str], server: OddServer, answer: Reply, home: Path) -> Result:
    server.answer = answer
    server.asked.clear()
    env = {
        "CODER_URL": server.url,
        "CODER_SESSION_TOKEN": "AAAAAAAAAA-BBBBBBBBBBBBBBBBBBBBBB",
        "CODER_NO_OPEN": "true",
        "CODER_AGENT_URL": server.url,
        "CODER_AGENT_TOKEN": "x",
        "PATH": "/nonexistent",
        "CODER_PG_CONNECTION_URL": "postgres://127.0.0.1:9/x",
    }
    return await run_cli(words, home=home, env=env, stdin=STDIN.get(name, "yes\n[]\n"))


def fault(name: str, server: OddServer, result: Result) -> str:
    """Return what is wrong with the end of a command."""
    if "Traceback" in result.stderr or result.code not in (0, 1) or "a defect of this program" in result.stderr:
        return f"exit {result.code}: {result.stderr[-400:]}"
    says = result.stderr + (result.stdout if name in FAILS_ON_STDOUT else "")
    if result.code == 1 and not says.strip():
        return "it failed without a word"
    return f"it asked {len(server.asked)} times" if len(server.asked) > 60 else ""


def sends_requests(name: str) -> bool:
    """The other commands query a missing database, or the machine."""
    return name.split(maxsplit=1)[0] not in {"server", "stat", "reset-password"}


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in NOT_RUN])
async def test_ends_with_words(name: str, server: OddServer, home: Path) -> None:
    odd = dict(ODD) if sends_requests(name) else {"nothing": ODD["nothing"]}
    await expect_words(name, server, home, odd, seeds=(0,))


@pytest.mark.soak
@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in NOT_RUN])
async def test_other_flaws_end_with_words(name: str, server: OddServer, home: Path) -> None:
    await expect_words(name, server, home, {}, seeds=(1, 2))


async def expect_words(name: str, server: OddServer, home: Path, odd: dict[str, Reply], seeds: tuple[int, ...]) -> None:
    described_ones = {}
    if sends_requests(name) and name not in OVER_THE_MESH:
        described_ones = {f"{flaw}, {seed}": flawed_answer(flaw, seed, name) for flaw in FLAWS for seed in seeds}
    faults = {}
    for label, answer in (odd | described_ones).items():
        server.upgrades = label in described_ones
        result = await run(name, arguments(name), server, answer, home)
        if message := fault(name, server, result):
            faults[label] = message
    assert not faults
    assert server.failed is None


READS = [name for name in COMMANDS if name not in NOT_RUN and name not in OVER_THE_MESH and sends_requests(name)]


@pytest.mark.parametrize("name", [name for name in READS if any(forms(name))])
async def test_every_output_form_ends_with_words(name: str, server: OddServer, home: Path) -> None:
    faults = {}
    server.upgrades = True
    for more in forms(name):
        for flaw in FLAWS:
            result = await run(name, [*arguments(name), *more], server, flawed_answer(flaw, 1, name), home)
            if message := fault(name, server, result):
                faults[*more, flaw] = message
    assert not faults
    assert server.failed is None


@pytest.mark.parametrize("name", READS)
async def test_whole_answer_suffices(name: str, server: OddServer, home: Path) -> None:
    """Without this, the flaws of the other tests are never reached: the first read would end the command."""
    server.upgrades = True
    result = await run(name, arguments(name), server, flawed_answer("whole", 0, name), home)
    if name in NOT_WHOLE:
        assert result.code == 1, "it needs no reason any more"
    else:
        assert result.code == 0, result.stderr
    assert server.failed is None


def lines_with_odd_arguments(name: str) -> Iterator[list[str]]:
    """Return the command with an odd text for each of its arguments and of its flags' values."""
    words, count = arguments(name), len(name.split())
    for option in (*load(name).options, *(GLOBAL_OPTIONS if name == "whoami" else ())):
        if option.flag and option.kind != "bool":
            yield from ([*words[:count], f"--{option.flag}={odd}", *words[count:]] for odd in ("[", "=\udcff"))
    for at in range(count, len(words)):
        if not words[at].startswith("-"):
            yield from ([*words[:at], odd, *words[at + 1 :]] for odd in ("", "[", "=\udcff"))


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in NOT_RUN and sends_requests(name)])
async def test_odd_arguments_are_no_defect(name: str, server: OddServer, home: Path) -> None:
    """Odd texts: brackets, bytes that are not UTF-8, and the empty text of an unset variable."""
    not_found: Reply = lambda _method, _path: reply('{"message": "no"}', status="404 Not Found")  # noqa: E731
    answer = not_found if name in OVER_THE_MESH else flawed_answer("whole", 0, name)
    server.upgrades = True
    faults = {}
    for words in lines_with_odd_arguments(name):
        result = await run(name, words, server, answer, home)
        output = fault(name, server, result)
        if output or "is not what this program understands" in result.stderr:
            faults[ascii(words)] = output or result.stderr[-300:]
    assert not faults


@pytest.mark.parametrize("name", sorted(OVER_THE_MESH))
async def test_mesh_commands_survive_flaws(
    name: str, server: OddServer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They dial the agent of the answer, so each runs until it waits for that, at most half a second."""
    begin = trio.run

    def limited(main: Callable[..., Awaitable[Any]], *args: Any, **more: Any) -> Any:
        async def run_briefly() -> Any:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(cancel_soon, nursery.cancel_scope)
                done = await main(*args)
                nursery.cancel_scope.cancel()
                return done

        return begin(run_briefly, **more)

    async def cancel_soon(scope: trio.CancelScope) -> None:
        while not server.asked:
            await trio.sleep(0.01)
        with trio.move_on_after(0.5):
            await trio.testing.wait_all_tasks_blocked(0.1)
        scope.cancel()

    monkeypatch.setattr(trio, "run", limited)
    faults = {}
    requested = set()
    server.upgrades = False
    for flaw in FLAWS:
        for seed in range(2):
            result = await run(name, arguments(name), server, flawed_answer(flaw, seed, name), home)
            requested |= {path.partition("?")[0].rpartition("/")[2] for _, path in server.asked}
            if message := fault(name, server, result):
                faults[flaw, seed] = message
    assert not faults
    assert requested & {"connection", "coordinate", "pty"}, "no answer was good enough to go on to the mesh"
    assert server.failed is None
