"""`coder config-ssh`: the written section, the stored options and the output streams."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.programs.command_line import Result, run_cli
from tests.kit.stand_ins.scripted_http_servers import OddServer, odd_server, reply

SERVER = {"hostname_prefix": "coder.", "hostname_suffix": "coder", "ssh_config_options": {}}
IDS = [f"6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a1{number}" for number in range(3)]
AGENTS = [{"id": IDS[0], "name": "main"}, {"id": IDS[1], "name": "gpu"}]


def workspace(number: int, name: str, resources: list[dict[str, Any]] | None) -> dict[str, Any]:
    return {"id": IDS[number], "name": name, "latest_build": {"id": IDS[number], "resources": resources}}


WORKSPACES = {
    "workspaces": [
        workspace(0, "one", [{"id": IDS[0], "agents": AGENTS[:1]}]),
        workspace(1, "two", [{"id": IDS[0], "agents": AGENTS}]),
        workspace(2, "bare", None),
    ]
}


def answer(_method: str, path: str) -> bytes:
    return reply(json.dumps(SERVER if path.endswith("/deployment/ssh") else WORKSPACES))


@pytest.fixture
def server() -> Iterator[OddServer]:
    with odd_server() as server:
        server.answer = answer
        yield server


async def config_ssh(server: OddServer, home: Path, *words: str) -> Result:
    env = {"CODER_URL": server.url, "CODER_SESSION_TOKEN": "x"}
    return await run_cli(["config-ssh", "--ssh-config-file", str(home / "config"), *words], home=home, env=env)


async def test_previous_options_are_all_kept(server: OddServer, tmp_path: Path) -> None:
    values = ["--ssh-host-prefix", "my.", "--hostname-suffix", "mine", "--wait", "no", "--disable-autostart"]
    values += ["-o", "ForwardAgent yes", "-o", "Compression=yes"]
    assert (await config_ssh(server, tmp_path, "-y", *values)).code == 0
    written = (tmp_path / "config").read_text()
    assert "ssh --stdio --wait=no --disable-autostart=true --ssh-host-prefix my. %h" in written
    assert "Host *.mine" in written

    again = await config_ssh(server, tmp_path, "-y", "--use-previous-options")
    assert "No changes" in again.stderr
    assert (tmp_path / "config").read_text() == written


async def test_dry_run_prints_diff_to_stdout(server: OddServer, tmp_path: Path) -> None:
    result = await config_ssh(server, tmp_path, "--dry-run")
    assert result.code == 0
    assert result.stdout.startswith(f"--- {tmp_path}/config\n+++ ")
    assert "+Host coder.*\n" in result.stdout
    assert "would be made" in result.stderr
    assert not (tmp_path / "config").exists()


async def test_no_wildcard_lists_hosts(server: OddServer, tmp_path: Path) -> None:
    assert (await config_ssh(server, tmp_path, "-y", "--no-wildcard")).code == 0
    written = (tmp_path / "config").read_text()
    assert "Host coder.bare coder.one coder.two coder.two.gpu coder.two.main\n" in written
    assert "Host bare.coder one.coder two.coder gpu.two.coder main.two.coder\n" in written
    assert "*" not in written.replace("/*", "")
    assert "# :no-wildcard=true\n" in written


OLD = "# ------------START-CODER-----------\nHost coder.*\n\tUser old\n# ------------END-CODER------------\n"


@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["LF", "CRLF"])
async def test_text_outside_section_is_unchanged(line_end: str, server: OddServer, tmp_path: Path) -> None:
    """This includes comments in another encoding and CRLF lines."""
    path = tmp_path / "config"
    head = f"# caf\udce9{line_end}Host a{line_end}\tUser b{line_end}{line_end}".encode(errors="surrogateescape")
    tail = f"{line_end}Host z{line_end}".encode()
    path.write_bytes(head + OLD.replace("\n", line_end).encode() + tail)
    path.chmod(0o640)
    for _ in range(2):
        assert (await config_ssh(server, tmp_path, "-y")).code == 0
        written = path.read_bytes()
        assert written.startswith(head + b"# ---") and written.endswith(b"END-CODER------------\n" + tail), written
        assert b"User old" not in written and b"Host coder.*" in written
    assert path.stat().st_mode & 0o777 == 0o640


async def test_diff_covers_only_section(server: OddServer, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_bytes(b"# caf\xe9\nHost a\n\tUser b\n" + OLD.encode() + b"Host z\n")
    output = (await config_ssh(server, tmp_path, "--dry-run")).stdout.splitlines()
    removed, added = ([line[1:] for line in output[2:] if line[0] == sign] for sign in "-+")
    assert removed == ["\tUser old"]
    assert added[0].startswith("# Written by `coder config-ssh`") and "Host *.coder" in added
    assert not {"Host a", "Host z", *OLD.splitlines()[:2]} & {*removed, *added}
    prompted = await config_ssh(server, tmp_path)  # there is no terminal to confirm
    assert prompted.code == 1 and "-\tUser old" in prompted.stderr and b"User old" in path.read_bytes()


async def test_keeps_link_and_damaged_marks(server: OddServer, tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    real = tmp_path / "dotfiles/config"
    real.write_text("Host a\n")
    (tmp_path / "config").symlink_to(real)
    assert (await config_ssh(server, tmp_path, "-y")).code == 0
    assert (tmp_path / "config").is_symlink() and "Host coder.*" in real.read_text()
    start, end = OLD.splitlines()[0], OLD.splitlines()[-1]
    for damaged in (start, end, f"{end}\n{start}", f"{OLD}{OLD}"):
        real.write_text(damaged)
        refused = await config_ssh(server, tmp_path, "-y")
        assert refused.code == 1 and "marker lines of coder's section are damaged" in refused.stderr, damaged
        assert real.read_text() == damaged


@pytest.mark.parametrize("option", ["", "=", "ForwardAgent", "User=x\nHost *"])
async def test_invalid_setting_is_rejected(option: str, server: OddServer, tmp_path: Path) -> None:
    if option:  # an empty value counts as unset
        refused = await config_ssh(server, tmp_path, "-y", "-o", option)
        assert refused.code == 1 and "--ssh-option: " in refused.stderr
        assert "is not an SSH client setting" in refused.stderr
    _says(server, {option.partition("=")[0]: option.partition("=")[2]})
    refused = await config_ssh(server, tmp_path, "-y")
    if option == "ForwardAgent":  # see below
        assert refused.code == 0
        return
    assert refused.code == 1 and "is not an SSH client setting" in refused.stderr
    assert not (tmp_path / "config").exists()


def _says(server: OddServer, settings: dict[str, str]) -> None:
    values = {**SERVER, "ssh_config_options": settings}
    server.answer = lambda _method, path: reply(json.dumps(values if path.endswith("/deployment/ssh") else WORKSPACES))


@pytest.mark.parametrize("value", ["", " ", "\t", "\n"])
async def test_server_setting_without_value_is_skipped(value: str, server: OddServer, tmp_path: Path) -> None:
    """OpenSSH rejects a keyword without a value, and the whole file with it."""
    _says(server, {"ForwardAgent": value, "ServerAliveInterval": "30"})
    done = await config_ssh(server, tmp_path, "-y")
    assert done.code == 0, done.stderr
    assert "ForwardAgent" in done.stderr and "has no value" in done.stderr
    written = (tmp_path / "config").read_text()
    assert "ForwardAgent" not in written and "\tServerAliveInterval 30\n" in written


HOSTILE = ["x;touch /tmp/x;", "$(touch x)", "`x`", "a\nProxyCommand x", 'a" !exec "x', "a b", "a%h", "*", "a'"]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("field", ["hostname_prefix", "hostname_suffix"])
async def test_host_names_for_shell_are_rejected(field: str, text: str, server: OddServer, tmp_path: Path) -> None:
    """A shell reads ProxyCommand, at every later `ssh`."""
    values = {**SERVER, field: text}
    server.answer = lambda _method, path: reply(json.dumps(values if path.endswith("/deployment/ssh") else WORKSPACES))
    done = await config_ssh(server, tmp_path, "-y")
    assert done.code == 1 and "cannot be written for ssh" in done.stderr
    assert not (tmp_path / "config").exists()


async def test_workspace_name_with_line_is_rejected(server: OddServer, tmp_path: Path) -> None:
    names = {"workspaces": [workspace(0, "one\n\tProxyCommand x", None)]}
    server.answer = lambda _method, path: reply(json.dumps(SERVER if path.endswith("/deployment/ssh") else names))
    done = await config_ssh(server, tmp_path, "-y", "--no-wildcard")
    assert done.code == 1 and not (tmp_path / "config").exists()


@pytest.mark.parametrize("name", ["ProxyCommand", "localcommand", "Match", "HOST", "KnownHostsCommand", "Include"])
async def test_server_setting_that_starts_programs_is_skipped(name: str, server: OddServer, tmp_path: Path) -> None:
    _says(server, {name: "touch-x", "ServerAliveInterval": "30"})
    done = await config_ssh(server, tmp_path, "-y")
    assert done.code == 0, done.stderr
    assert name in done.stderr and "could start programs" in done.stderr
    written = (tmp_path / "config").read_text()
    assert "touch-x" not in written and "\tServerAliveInterval 30\n" in written
