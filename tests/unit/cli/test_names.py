"""Selection of a command by the words of a line: aliases, groups, flags before and between them."""

from __future__ import annotations

from pathlib import Path

import pytest

from coder.base.errors import CoderError
from coder.cli.core.command import command_name, load
from coder.cli.core.command_table import ALIASES, COMMANDS, GROUPS
from coder.cli.network.vscodessh import target
from tests.kit.programs.command_line import run_cli
from tests.kit.stand_ins.scripted_http_servers import odd_server, reply


@pytest.mark.parametrize("alias", ALIASES)
def test_aliases_resolve_word_by_word(alias: str) -> None:
    assert command_name(alias.split()) == ALIASES[alias]
    assert alias not in COMMANDS, "a command name cannot be an alias"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("pubkey", "publickey"),
        ("prebuild pause", "prebuilds pause"),
        ("users active x", "users activate"),
        ("secrets remove x", "secret delete"),
        ("org -O x setting show orgsync", "organizations settings show organization-sync"),
        ("organizations --org x members ls", "organizations members list"),
        ("external-workspaces -O x list", "external-workspaces list"),
        ("--token x -v organizations --org=x list", "organizations list"),
        ("organizations --org x", "organizations"),
        ("login https://x token", "login"),
        ("login token", "login token"),
        ("ssh w ls", "ssh"),
        ("nope", None),
        ("stat disk", "stat disk"),
        ("server", "server"),
    ],
)
def test_words_select_command(line: str, name: str | None) -> None:
    assert command_name(line.split()) == name


@pytest.mark.parametrize(
    "name", [name for name in COMMANDS if name.split(maxsplit=1)[0] in {"organizations", "external-workspaces"}]
)
def test_organization_flag_of_group(name: str) -> None:
    group, rest = name.split(maxsplit=1)
    assert command_name([group, "--org", "x", *rest.split()]) == name
    assert any(option.flag == "org" and option.short == "O" for option in load(name).options)


def test_groups_and_commands_have_summaries() -> None:
    assert all(text for _, text in COMMANDS.values())
    assert all(GROUPS.values())


def test_the_editors_host_names() -> None:
    assert target("coder-vscode.dev.example.com--alice--w1") == "alice/w1"
    assert target("coder-vscode--alice--w1--main") == "alice/w1.main"
    for host in ("w1", "coder-vscode--alice", "coder-vscode--alice--", "a--b--c--d--e"):
        with pytest.raises(CoderError, match="invalid argument format"):
            target(host)


async def test_vscodessh_reads_deployment_files(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("AAAAAAAAAA-BBBBBBBBBBBBBBBBBBBBBB\n")
    with odd_server() as server:
        server.answer = lambda _method, _path: reply('{"message": "Resource not found"}', status="404 Not Found")
        (tmp_path / "url").write_text(server.url)
        words = ["vscodessh", "--url-file", "url", "--session-token-file", "token", "coder-vscode--alice--w1--main"]
        result = await run_cli(words, home=tmp_path)
        assert result.code == 1
        assert "Resource not found" in result.stderr
        assert server.asked == [("GET", "/api/v2/users/alice/workspace/w1")]


@pytest.mark.parametrize(("verb", "value"), [("enable", b"true"), ("disable", b"false")])
async def test_disable_and_enable_secret(verb: str, value: bytes, tmp_path: Path) -> None:
    with odd_server() as server:
        server.answer = lambda _method, _path: reply("{}")
        env = {"CODER_URL": server.url, "CODER_SESSION_TOKEN": "x"}
        result = await run_cli(["secret", verb, "db"], home=tmp_path, env=env)
        assert result.stdout == f"Secret db is {verb}d.\n"
        assert server.asked == [("PATCH", "/api/v2/users/me/secrets/db")]
        assert server.bodies == [b'{"enabled":' + value + b"}"]
