"""No command ever ends in a traceback or a hang, whatever a server answers.

Every command of the table runs against answers that are empty, null, of another shape or type, cut off, a web page,
an error, or nothing at all; and against whole answers of the reference with something wrong in them. What a command
does with each is its own tests' matter; here it must end by itself, with an exit code, and with words.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from coder.cli.command_table import COMMANDS
from coder.cli.main import load
from tests.kit.cli import run_cli
from tests.kit.described_answers import FLAWS, described
from tests.kit.odd_server import OddServer, Reply, odd_server, reply

NOT_RUN = {
    "agent": "a daemon", "server": "a daemon", "provisioner start": "a daemon", "provisionerd start": "a daemon",
    "workspace-proxy server": "a daemon", "terraform-provider": "speaks to terraform, not to a server",
    "server postgres-builtin-serve": "starts a database", "server dbcrypt delete": "waits long for its database",
    "completion words": "its words are the rest of the line", "connect exists": "answers by its exit code alone",
}  # fmt: skip
"""Commands that run for ever, or that no server answers."""

OVER_THE_MESH = {"ssh", "ping", "port-forward", "speedtest", "debug trace", "exp rpty", "netcheck", "support bundle"}
"""With a whole workspace in the answer these go on to dial it, for as long as it takes."""

ARGUMENTS: dict[str, list[str]] = {
    "exp scaletest create-workspaces": ["-t", "x", "--timeout", "300ms", "--cleanup-timeout", "300ms"],
    "exp scaletest dashboard": ["--job-timeout", "100ms", "--interval", "10s"],
    "autoupdate": ["w", "always"], "schedule start": ["w", "9:00AM", "Mon-Fri", "UTC"], "schedule stop": ["w", "2h"],
    "schedule extend": ["w", "2h"], "ssh": ["w", "true"], "port-forward": ["w", "--tcp", "0:80"],
    "ping": ["w", "-n", "1", "-t", "100ms"], "speedtest": ["w", "-t", "1s"], "create": ["w", "-t", "x", "-y"],
    "external-workspaces create": ["w", "-t", "x", "-y"], "state push": ["w", "file"], "secret import": ["file.env"],
    "secret create": ["s", "--value", "v"], "secret update": ["s", "--value", "v"],
    "templates push": ["x", "-d", "tpl", "-y"], "templates create": ["x", "-d", "tpl", "-y"],
    "templates pull": ["x", "out", "-y"], "templates init": ["--id", "scratch", "made"],
    "templates edit": ["x", "--description", "d", "-y"],
    "templates versions promote": ["-t", "x", "--template-version", "x"],
    "users create": ["-u", "x", "-e", "x@example.com", "-p", "Rec0rded-Pass!"],
    "users edit-roles": ["x", "--roles", "owner", "-y"], "licenses add": ["-l", "x"],
    "notifications custom": ["title", "message"], "task create": ["do", "--template", "x"],
    "task send": ["t", "more"], "sharing add": ["w", "--user", "x:use"], "sharing remove": ["w", "--user", "x"],
    "organizations roles create": ["--stdin", "-y"], "organizations roles update": ["--stdin", "-y"],
    "organizations members edit-roles": ["x", "organization-auditor"], "completion": ["-s", "bash", "-p"],
    "dotfiles": ["./repo", "-y"], "gitssh": ["host", "true"], "gitaskpass": ["Username for 'https://x.example': "],
    "workspace-proxy create": ["--name", "x", "--display-name", "x", "--icon", "x"],
    "workspace-proxy edit": ["x", "--display-name", "y"],
    "wireguard add": ["phone"], "server restore": ["file"],
    "login": ["--token", "AAAAAAAAAA-BBBBBBBBBBBBBBBBBBBBBB"], "rename": ["w", "v"],
    "provisioner jobs cancel": ["6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a11"], "server dbcrypt rotate": [],
    "open app": ["w", "x"], "external-auth access-token": ["x"],
}  # fmt: skip

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
    "not UTF-8": lambda _m, _p: b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\n\"\xff\"",
    "a web page": lambda _m, _p: reply("<html><body>Sign in</body></html>", kind="text/html"),
    "500": lambda _m, _p: reply("<html>no</html>", status="500 Internal Server Error", kind="text/html"),
    "500 in JSON": lambda _m, _p: reply('{"message": null, "validations": [null]}', status="500 Internal Server Error"),
    "401": lambda _m, _p: reply('{"message": "no", "detail": 7, "validations": {}}', status="401 Unauthorized"),
    "redirect": lambda _m, _p: reply("", status="302 Found"),
    "nothing": lambda _m, _p: b"",
    "no HTTP": lambda _m, _p: b"SSH-2.0-x\r\n\r\n",
}  # fmt: skip


def flawed(flaw: str, seed: int) -> Reply:
    chance = random.Random(seed)

    def answer(method: str, path: str) -> bytes:
        return reply(json.dumps(FLAWS[flaw](described(method, path), chance)))

    return answer


def arguments(name: str) -> list[str]:
    command = load(name)
    words = ARGUMENTS.get(name, ["x"] * command.min_args)
    asks = any(option.flag == "yes" for option in command.options)
    return [*name.split(), *words, *(["-y"] if asks and "-y" not in words else [])]


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


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in NOT_RUN])
async def test_ends_with_words(name: str, server: OddServer, home: Path) -> None:
    replies = dict(ODD)
    if name.split(maxsplit=1)[0] in {"server", "stat", "reset-password"}:
        replies = {"nothing": replies["nothing"]}  # they ask a database, which is not there, or the machine
    elif name not in OVER_THE_MESH:
        replies |= {f"{flaw}, {seed}": flawed(flaw, seed) for flaw in FLAWS for seed in range(3)}
    env = {
        "CODER_URL": server.url, "CODER_SESSION_TOKEN": "AAAAAAAAAA-BBBBBBBBBBBBBBBBBBBBBB", "CODER_NO_OPEN": "true",
        "CODER_AGENT_URL": server.url, "CODER_AGENT_TOKEN": "x", "PATH": "/nonexistent",
        "CODER_PG_CONNECTION_URL": "postgres://127.0.0.1:9/x",
    }  # fmt: skip
    words = arguments(name)
    wrong = {}
    for label, answer in replies.items():
        server.answer = answer
        server.asked.clear()
        result = await run_cli(words, home=home, env=env, stdin="yes\n[]\n")
        if "Traceback" in result.stderr or result.code not in (0, 1) or "a defect of this program" in result.stderr:
            wrong[label] = (result.code, result.stderr[-400:])
        if result.code == 1 and not result.stderr.strip():
            wrong[label] = (1, "it failed without a word")
        if len(server.asked) > 60:
            wrong[label] = (result.code, f"it asked {len(server.asked)} times")
    assert not wrong
    assert server.failed is None
