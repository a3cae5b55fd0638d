"""Words of ProxyCommand: read by a POSIX shell, and by Windows' own OpenSSH, which starts the line as it is."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from coder.api.site.deployment import SSHConfigResponse
from coder.base.errors import CoderError
from coder.cli.network import config_ssh
from coder.cli.network.config_ssh import HostOptions, command_word

WINDOWS = ["C:\\Program Files\\coder.exe", "C:\\Users\\Zoë Müller\\coder.exe", "D:\\a\\b.exe", "C:\\50%x\\c.exe"]
POSIX = ["/usr/bin/coder", "/home/a b/coder", "/o'x/coder", "/50%x/coder", '/a"b/coder']


@pytest.mark.parametrize("path", WINDOWS)
def test_windows_word_is_one_argument(path: str) -> None:
    word = command_word(path, windows=True)
    assert word.startswith('"') and word.endswith('"') and word[1:-1].replace("%%", "%") == path
    assert not path.endswith("\\"), "a quote after a backslash would be part of the word"


@pytest.mark.parametrize(("path", "windows"), [*((path, True) for path in WINDOWS), *((path, False) for path in POSIX)])
def test_shell_reads_one_word(path: str, windows: bool) -> None:
    word = command_word(path, windows=windows).replace("%%", "%")
    done = subprocess.run(["sh", "-c", f"printf %s {word}"], capture_output=True, check=True)
    assert done.stdout.decode() == path


def test_unix_names_have_slashes() -> None:
    assert command_word("C:\\a b\\c.exe", windows=True, unix_names=True) == '"C:/a b/c.exe"'


@pytest.mark.parametrize(("path", "windows"), [("/a\nb", False), ("C:\\a\rb", True), ('C:\\a"b', True)])
def test_unwritable_path_is_rejected(path: str, windows: bool) -> None:
    with pytest.raises(CoderError, match="cannot be written into an SSH configuration"):
        command_word(path, windows=windows)


def config_ssh_invocation(program: str, folder: str) -> Any:
    options = SimpleNamespace(coder_binary_path=program, force_unix=False)
    return SimpleNamespace(options=options, globals=SimpleNamespace(config_dir=folder))


def test_windows_section_runs_no_match_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config_ssh, "is_windows", lambda: True)
    invocation = config_ssh_invocation("C:\\a b\\coder.exe", "C:\\Users\\Zoë\\coderv2")
    text = config_ssh._block(invocation, SSHConfigResponse("", "coder", {}), HostOptions(), None)
    assert "Match" not in text and "Host *.coder" in text
    (line,) = [line.strip() for line in text.splitlines() if "ProxyCommand" in line]
    assert line.startswith('ProxyCommand "C:\\a b\\coder.exe" --global-config "')
    assert line.endswith(" ssh --stdio --hostname-suffix coder %h")
