"""Rules that hold for every command of the table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from coder.cli.core.command import OPTIONS_OF_GROUPS, load, options_of_groups
from coder.cli.core.command_table import COMMANDS
from coder.cli.core.options import GLOBAL_OPTIONS
from tests.kit.api.api_description import described
from tests.kit.programs.command_line import Result, run_cli
from tests.kit.stand_ins.scripted_http_servers import OddServer, odd_server, reply
from tests.unit.cli.test_odd_answers import OVER_THE_MESH, arguments

ORGANIZATIONS = [
    {"id": f"6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a1{number}", "name": name, "is_default": not number}
    for number, name in enumerate(("coder", "second"))
]
NO_CHOICE = {
    "provisioner start": "a daemon; a key says its organization",
    "provisionerd start": "as above",
    "create": "a template's name decides, and two of one name are refused",
    "external-workspaces create": "as create",
    "task create": "as create",
    "templates list": "lists those of all organizations",
    "organizations list": "lists them",
    "organizations create": "names one",
    "organizations delete": "names one",
    "external-workspaces list": "lists those of all organizations",
    "external-workspaces agent-instructions": "names a workspace",
    "external-workspaces rotate-token": "names a workspace",
    "external-workspaces health": "names a workspace",
    "organizations settings show organization-sync": "of the whole deployment",
    "organizations settings set organization-sync": "of the whole deployment",
}
"""Commands with --org that do not require it with several organizations."""


@pytest.fixture
def server() -> Iterator[OddServer]:
    with odd_server(patience=10**9) as server:
        yield server


async def run(words: list[str], server: OddServer, home: Path, **env: str) -> Result:
    session = {"CODER_URL": server.url, "CODER_SESSION_TOKEN": "AAAAAAAAAA-BBBBBBBBBBBBBBBBBBBBBB"}
    return await run_cli(
        words, home=home, env={**session, "PATH": "/nonexistent", **env}, stdin="{}" if "set" in words else "yes\n{}\n"
    )


def answers_of_two_organizations(method: str, path: str) -> bytes:
    if path.partition("?")[0] == "/api/v2/users/me/organizations":
        return reply(json.dumps(ORGANIZATIONS))
    return reply(json.dumps(described(method, path)))


@pytest.mark.parametrize(
    "name",
    [name for name in COMMANDS if name not in NO_CHOICE and any(item.flag == "org" for item in load(name).options)],
)
async def test_ambiguous_organization_is_rejected(name: str, server: OddServer, tmp_path: Path) -> None:
    (tmp_path / "tpl").mkdir()
    (tmp_path / "tpl" / "main.tf").write_text("")
    server.answer = answers_of_two_organizations
    result = await run(arguments(name), server, tmp_path)
    assert result.code == 1
    assert "choose one with --org (one of: coder, second)" in result.stderr
    assert {method for method, _ in server.asked} == {"GET"}


@pytest.mark.parametrize("name", COMMANDS)
async def test_debug_options_only_prints(name: str, server: OddServer, tmp_path: Path) -> None:
    if name == "completion words":
        return  # its arguments are the rest of the line
    words = arguments(name)
    count = len(name.split())
    result = await run([*words[:count], "--debug-options", *words[count:]], server, tmp_path, CODER_VERBOSE="true")
    assert result.code == 0, result.stderr
    lines = {line.split()[0]: line for line in result.stdout.splitlines()}
    expected = {option.flag or option.name for option in (*load(name).options, *GLOBAL_OPTIONS)}
    assert set(lines) == {"Option", *expected}
    assert lines["verbose"].split() == ["verbose", "true", "env"]
    assert "BBBB" not in result.stdout
    assert not server.asked
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", COMMANDS)
async def test_completion_mode_runs_nothing(name: str, server: OddServer, tmp_path: Path) -> None:
    result = await run([*arguments(name), ""], server, tmp_path, COMPLETION_MODE="1")
    assert result.code == 0
    assert not result.stderr
    assert not [method for method, _ in server.asked if method != "GET"]
    assert not list(tmp_path.iterdir())


async def test_completion_mode_offers_words(server: OddServer, tmp_path: Path) -> None:
    offered = await run(["templates", "ver"], server, tmp_path, COMPLETION_MODE="1")
    assert offered.stdout == "versions\n"


def answer_without_rows(method: str, path: str) -> bytes:
    """Return an answer with null lists, as Go programs encode empty ones."""
    answer = described(method, path)
    if path.startswith("/api/v2/users/me/organizations"):
        answer = ORGANIZATIONS[:1]
    elif path.partition("?")[0] in {"/api/v2/tasks", "/api/v2/workspaceproxies"}:  # not described by the reference
        answer = {"tasks": None, "regions": None}
    elif isinstance(answer, list):
        answer = None
    elif isinstance(answer, dict) and "count" in answer:
        answer = {key: None if isinstance(value, list) else value for key, value in answer.items()}
    return reply(json.dumps(answer))


@pytest.mark.parametrize("name", [name for name in COMMANDS if name.split()[-1] in {"list", "ls"}])
@pytest.mark.parametrize("form", ["table", "json"])
async def test_empty_list_succeeds(name: str, form: str, server: OddServer, tmp_path: Path) -> None:
    if name == "exp sync list":
        return  # connects to the agent, not to a server
    server.answer = answer_without_rows
    result = await run([*arguments(name), "-o", form], server, tmp_path)
    assert result.code == 0, result.stderr
    if form == "json":
        assert json.loads(result.stdout) in ([], {}) or name == "features list"


def answer_of_other_release(method: str, path: str) -> bytes:
    """Return the reference's answer, from a server of a much newer release."""
    answer = described(method, path)
    if path.startswith("/api/v2/users/me/organizations"):
        answer = ORGANIZATIONS[:1]
    elif path.partition("?")[0] == "/api/v2/tasks":  # not described by the reference
        answer = {"tasks": []}
    return reply(json.dumps(answer)).replace(b"\r\n", b"\r\nX-Coder-Build-Version: v99.1.0\r\n", 1)


IN_JSON = [
    name
    for name in COMMANDS
    if any(option.flag == "output" and "json" in option.choices for option in load(name).options)
    and name not in OVER_THE_MESH
]


@pytest.mark.parametrize("name", IN_JSON)
async def test_stdout_is_only_json(name: str, server: OddServer, tmp_path: Path) -> None:
    server.answer = answer_of_other_release
    result = await run([*arguments(name), "-o", "json", "-v"], server, tmp_path)
    if result.code:
        assert not result.stdout, "a failed command has no result"
        assert result.stderr
        return
    if result.stdout:
        json.loads(result.stdout)
    if server.asked:
        assert "version mismatch: this program is" in result.stderr
        assert "GET http://127.0.0.1" in result.stderr or "POST http://127.0.0.1" in result.stderr


@pytest.mark.parametrize("line", ["show w", "list", "ssh w true", "ping w", "port-forward w --tcp 1", "whoami"])
async def test_version_warning_after_failure(line: str, server: OddServer, tmp_path: Path) -> None:
    head = b"\r\nX-Coder-Build-Version: v99.1.0\r\n"
    server.answer = lambda *_: reply("{}", status="404 Not Found").replace(b"\r\n", head, 1)
    result = await run(line.split(), server, tmp_path)
    assert (result.code, result.stdout) == (1, "")
    assert "version mismatch: this program is" in result.stderr.splitlines()[-1]
    quiet = await run([*line.split()[:1], "--no-version-warning", *line.split()[1:]], server, tmp_path)
    assert quiet.code == 1 and "version mismatch" not in quiet.stderr


async def test_group_options_before_or_after_words(server: OddServer, tmp_path: Path) -> None:
    for group in OPTIONS_OF_GROUPS:
        (option,) = options_of_groups(group)
        output = (await run([*group.split(), "--help"], server, tmp_path)).stdout
        assert f"--{option.flag}" in output
        for name in (name for name in COMMANDS if name.startswith(f"{group} ")):
            between = [*group.split(), f"--{option.flag}", "given", *arguments(name)[len(group.split()) :]]
            for words in (between, [*arguments(name), f"--{option.flag}", "given"]):
                result = await run([*words, "--debug-options"], server, tmp_path)
                row = next(row.split() for row in result.stdout.splitlines() if row.startswith(f"{option.flag} "))
                assert row == [option.flag, "given", "flag"], name


@pytest.mark.parametrize(
    ("line", "is_ours"),
    [
        ("ssh w --help", True),
        ("ssh w ls --help", False),
        ("ssh --wait no w --help", True),
        ("ssh w -- --help", False),
        ("exp rpty w --help", True),
        ("exp rpty w ls --help", False),
        ("exp rpty -c x w ls -h", False),
        ("gitssh --help", True),
        ("gitssh host --help", False),
        ("list --help", True),
        ("list -- --help", False),
        ("users --help", True),
    ],
)
async def test_help_before_remote_command(line: str, is_ours: bool, server: OddServer, tmp_path: Path) -> None:
    result = await run(line.split(), server, tmp_path)
    assert ("USAGE:" in result.stdout) is is_ours
