"""Error output of commands."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from coder.base.errors import CoderError
from coder.cli.agents.credentials import read_token_option
from coder.cli.core import session
from coder.cli.core.command import Command, Invocation
from coder.cli.core.failures import add_action_to_errors, defect_text, error_text
from coder.cli.core.options import Options
from coder.cli.core.parsing import parse
from coder.cli.core.value_text import read_values
from coder.cli.declarations.agents.agent import AGENT
from coder.cli.declarations.server.support import BUNDLE
from coder.cli.program.completion import SCRIPTS, complete
from coder.cli.server.server import _yaml
from coder.cli.server.support import _workspaces
from coder.cli.workspaces.parameters import values_of_file
from coder.net import dial
from coder.net.errors import HttpError, NetError
from coder.net.request_log import REQUESTS, Exchange
from tests.kit.free_ports import free_port
from tests.kit.programs.command_line import run_cli
from tests.kit.stand_ins.scripted_http_servers import odd_server, reply


def failed(*traces: str, error: CoderError) -> CoderError:
    try:
        if traces:
            with add_action_to_errors(traces[0]):
                raise failed(*traces[1:], error=error)
        raise error
    except CoderError as caught:
        return caught


def test_api_error_lines() -> None:
    refused = HttpError(400, "No.", "because", [{"field": "name", "detail": "taken"}])
    text = error_text(failed("create", "ask", error=refused), is_terminal=False)
    assert text.split("\n") == [
        "Trace=[create: ask: ]",
        "No.",
        "1 validation error(s) found",
        "\t name : taken",
        "because",
    ]
    missing = HttpError(404, "Not there.")
    assert error_text(missing, is_terminal=False) == "Not there."
    assert error_text(missing, is_terminal=True).startswith("Not there.\nSuggestion: Check")
    assert error_text(HttpError(401, "Who?"), is_terminal=False).endswith("'coder login'.")


async def test_refused_connection_has_next_step() -> None:
    """An added action keeps the cause's next step, and the text has no Python values."""
    port = free_port()
    with pytest.raises(NetError) as refused:
        await dial._tcp("127.0.0.1", port)
    error = failed("query workspaces", error=refused.value)
    line = f"query workspaces: cannot connect to 127.0.0.1:{port}: Connection refused"
    assert error_text(error, is_terminal=True).split("\n") == [line, "Is the server running, and is the URL right?"]
    assert error_text(error, is_terminal=False) == line


def test_refused_token_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = HttpError(401, "You are signed out.", "API key is invalid.")
    monkeypatch.delenv("CODER_SESSION_TOKEN", raising=False)
    assert error_text(refused, is_terminal=True).split("\n") == [
        "You are signed out.",
        "API key is invalid.",
        "Suggestion: Try logging in using 'coder login'.",
    ]
    monkeypatch.setenv("CODER_SESSION_TOKEN", "x")
    assert "unset CODER_SESSION_TOKEN" in error_text(refused, is_terminal=True)
    assert error_text(refused, is_terminal=False).endswith("'coder login'.")
    own = CoderError("http_401", "create api key", "Create another.")
    own.__cause__ = refused
    assert error_text(own, is_terminal=True).endswith("Suggestion: Create another.")


def test_terminals_get_sentences_without_trace() -> None:
    refused = HttpError(404, "Not there.")
    text = error_text(failed("get workspace", error=refused), is_terminal=True)
    assert text.startswith("get workspace: Not there.") and "Trace=" not in text


def test_own_advice_replaces_login() -> None:
    try:
        try:
            raise HttpError(401, "provisioner daemon key invalid")
        except HttpError as error:
            raise CoderError("refused", "connect", "Check the key.") from error
    except CoderError as caught:
        assert error_text(caught, is_terminal=True).splitlines() == [
            "connect: provisioner daemon key invalid",
            "Suggestion: Check the key.",
        ]


def test_hints_for_terminals_and_logs() -> None:
    plain = CoderError("x", "cannot", "Do this.")
    assert error_text(plain, is_terminal=False) == "cannot"
    assert error_text(plain, is_terminal=True) == "cannot\nDo this."


O = TypeVar("O", bound=Options)  # noqa: E741


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        (["tok"], ["tokens"]),
        (["tokens", "cr"], ["create"]),
        (["token", "cr"], ["create"]),
        (["list", "--outp"], ["--output"]),
        (["list", "-o", ""], ["table", "json"]),
        (["nope", ""], []),
        ([""], None),
    ],
)
def test_completion(line: list[str], offered: list[str] | None) -> None:
    result = complete(line)
    assert result == offered if offered is not None else "list" in result
    assert all("completion words" in script for script in SCRIPTS.values())


@pytest.mark.parametrize("line", ["show NAME", "users show NAME", "tokens create --user NAME"])
async def test_undecodable_name(line: str, tmp_path: Path) -> None:
    """A terminal or script with another encoding can pass such bytes, which Python decodes to lone surrogates."""
    name = os.fsdecode(b"caf\xe9")
    with odd_server() as server:
        server.answer = lambda _method, _path: reply('{"message": "Resource not found"}', status="404 Not Found")
        env = {"CODER_URL": server.url, "CODER_SESSION_TOKEN": "x"}
        result = await run_cli([name if word == "NAME" else word for word in line.split()], home=tmp_path, env=env)
    assert result.code == 1 and "is not written in UTF-8: '\\xe9'" in result.stderr, result.stderr
    assert "defect" not in result.stderr and "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (UnboundLocalError("cannot access local variable 'code'"), "internal error: cannot access local"),
        (NameError("name 'x' is not defined"), "internal error: name 'x'"),
        (KeyError("id"), 'the answer to GET /api/v2/users/me has an unexpected format: "id" is missing'),
    ],
    ids=lambda value: type(value).__name__,
)
def test_unbound_name_is_defect(error: Exception, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    exchange = Exchange("GET", "http://host/api/v2/users/me", 200, 0.1)
    monkeypatch.setattr(REQUESTS, "last", exchange)
    assert defect_text(error, verbose=False).startswith(message)


def given(command: Command[O], flag: str, path: Path) -> Invocation[O]:
    return parse(command, [flag, str(path)], {})


@pytest.mark.parametrize(
    "read",
    [
        lambda path: session.read_file(path.parent, path.name),
        values_of_file,
        lambda path: read_values(path, "variable"),
        lambda path: _yaml(str(path)),
        lambda path: read_token_option(given(AGENT, "--agent-token-file", path)),
        lambda path: _workspaces(given(BUNDLE, "--workspace-file", path), None),  # type: ignore[arg-type]
    ],
    ids=["session", "parameters", "variables", "settings", "agent's token", "workspaces"],
)
def test_undecodable_file(read: Callable[[Path], Any], tmp_path: Path) -> None:
    path = tmp_path / "a-file"
    path.write_bytes(b"caf\xe9: 1\n")
    with pytest.raises(CoderError) as refused:
        read(path)
    output = error_text(refused.value, is_terminal=False)
    assert str(path) in output and "codec can't decode byte 0xe9" in output
