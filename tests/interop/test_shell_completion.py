"""TAB in real shells: the script that `coder completion` installs, loaded as each shell loads it, and a person typing.

bash, zsh and fish are asked at a terminal of their own, with a server that knows some names. PowerShell's script is
parsed by PowerShell, where there is one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from coder.cli.program.completion import SCRIPTS
from tests.kit.paths import ROOT
from tests.kit.programs.command_line import Terminal, plain
from tests.kit.stand_ins.scripted_http_servers import odd_server, reply

ANSWERS = {
    "/api/v2/workspaces?q=owner%3Ame": {"workspaces": [{"name": "web-one"}, {"name": "web-two"}, {"name": "db"}]},
    "/api/v2/templates": [{"name": "docker-small"}, {"name": "docker-large"}, {"name": "vm"}],
    "/api/v2/users": {"users": [{"username": "alice"}, {"username": "alex"}, {"username": "bob"}]},
}
LINES = {
    "coder ssh w": ["web-one", "web-two"],
    "coder create -t docker": ["docker-large", "docker-small"],
    "coder users suspend al": ["alex", "alice"],
    "coder templates pu": ["pull", "push"],
    "coder list --se": ["--search"],
}
"""What is typed, and what TAB shows: workspaces, templates, users, commands and flags."""
PROMPT = {
    "bash": "PS1='READY> '\nbind 'set bell-style none'\nbind 'set enable-bracketed-paste off'\n",
    "zsh": "PS1='READY> '\nunsetopt LIST_BEEP PROMPT_SP\n",
    "fish": "function fish_greeting; end\n",
}


@dataclass
class Home:
    """A person's home and what their shell is started with."""

    path: Path
    env: dict[str, str]

    def coder(self, *words: str) -> str:
        done = subprocess.run(["coder", *words], env=self.env, capture_output=True, text=True, check=True)
        return done.stdout


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/coder"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m coder "$@"\n')
    program.chmod(0o755)
    with odd_server(patience=10**9) as server:
        server.answer = lambda _method, path: reply(json.dumps(ANSWERS[path]))
        env = {"HOME": str(tmp_path), "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "TERM": "dumb", "LANG": "C.UTF-8"}
        env |= {"CODER_URL": server.url, "CODER_SESSION_TOKEN": "x", "CODER_NO_COMMAND_SERVER": "1"}
        yield Home(tmp_path, env)
        assert server.failed is None


def installed(shell: str, home: Home) -> None:
    """By the command; the prompt is the test's."""
    home.coder("completion", "--shell", shell)
    if shell == "fish":
        (home.path / ".config/fish/config.fish").write_text(PROMPT[shell])
    else:
        rc = home.path / f".{shell}rc"
        rc.write_text(PROMPT[shell] + rc.read_text())


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_tab_at_a_prompt(shell: str, line: str, home: Home) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    installed(shell, home)
    terminal = Terminal([shell, "-i"], home.env)
    try:
        terminal.expect("READY> ")
        # The first takes what all have in common; bash shows what there is at the second that changes nothing.
        terminal.type(line + "\t" * (3 if shell == "bash" else 2))
        seen = "".join(plain(terminal.expect(word)) for word in LINES[line])
        assert not {"db", "vm", "bob"} & set(seen.split())
    finally:
        terminal.close()


def test_fish_offers_the_same(home: Home) -> None:
    """Its own engine is asked, which is what its TAB asks."""
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    installed("fish", home)
    for line, offered in LINES.items():
        done = subprocess.run(
            ["fish", "-c", f"complete -C '{line}'"], env=home.env, capture_output=True, text=True, check=True
        )
        assert sorted(row.split("\t")[0] for row in done.stdout.splitlines()) == offered, done.stderr


def test_powershell_reads_its_script(tmp_path: Path) -> None:
    if shutil.which("pwsh") is None:
        pytest.skip("pwsh is not installed")
    (tmp_path / "coder.ps1").write_text(SCRIPTS["powershell"])
    parse = (
        "$errors = $null; [void][System.Management.Automation.Language.Parser]::ParseFile("
        f"'{tmp_path}/coder.ps1', [ref]$null, [ref]$errors); $errors; exit $errors.Count"
    )
    done = subprocess.run(["pwsh", "-NoProfile", "-Command", parse], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
