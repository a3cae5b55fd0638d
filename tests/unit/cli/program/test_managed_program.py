"""Programs of packages, containers and agents are not replaced; the command names their own way."""

from __future__ import annotations

from pathlib import Path

import pytest

from coder.base.errors import CoderError
from coder.cli.program import managed_program
from coder.cli.program.managed_program import refuse_managed

OWNED = "/usr/bin/coder"


@pytest.fixture(autouse=True)
def plain_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managed_program, "CONTAINER_MARKS", ())
    monkeypatch.setattr(managed_program, "UNIT_FOLDERS", ())


def answers(program: str, output: str) -> managed_program.Ask:
    return lambda command: output if command[0] == program and command[-1] == OWNED else ""


NOTHING: managed_program.Ask = lambda command: ""  # noqa: E731
CASES = {
    "wheel": (None, {}, NOTHING, "pipx upgrade coder"),
    "deb": (OWNED, {}, answers("dpkg-query", f"coder-py: {OWNED}\n"), "apt-get install --only-upgrade coder-py"),
    "rpm": (OWNED, {}, answers("rpm", "coder-py"), "dnf upgrade coder-py"),
    "brew": ("/opt/homebrew/Cellar/coder/2.34.0/bin/coder", {}, NOTHING, "brew upgrade coder"),
    "nix": ("/nix/store/abc-coder/bin/coder", {}, NOTHING, "nix profile upgrade coder"),
    "snap": ("/snap/coder/1/coder", {}, NOTHING, "snap refresh coder"),
    "winget": ("/Users/ana/AppData/Local/Microsoft/WinGet/Packages/coder.exe", {}, NOTHING, "winget upgrade coder"),
    "scoop": ("/Users/ana/scoop/apps/coder/coder.exe", {}, NOTHING, "scoop update coder"),
    "pod": ("/opt/coder", {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, NOTHING, "new image"),
    "agent's shell": (
        "/tmp/coder.x/coder",
        {"CODER": "true", "GIT_SSH_COMMAND": "/tmp/coder.x/coder gitssh --"},
        NOTHING,
        "coder agent install --self-upgrade",
    ),
    "agent's shell of a name with a space": (
        "/tmp/Ana M/coder",
        {"CODER": "true", "GIT_SSH_COMMAND": "'/tmp/Ana M/coder' gitssh --"},
        NOTHING,
        "coder agent install --self-upgrade",
    ),
    "task of Windows": (
        "/Users/ana/AppData/Local/coder-agent/coder.exe",
        {"LOCALAPPDATA": "/Users/ana/AppData/Local"},
        NOTHING,
        "coder agent install --self-upgrade",
    ),
}


@pytest.mark.parametrize("kind", CASES)
def test_managed_program_names_its_command(kind: str) -> None:
    path, env, ask, command = CASES[kind]
    with pytest.raises(CoderError) as refused:
        refuse_managed(Path(path) if path else None, env, ask)
    assert refused.value.code == "managed_program" and command in refused.value.message


def test_container_mark_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managed_program, "CONTAINER_MARKS", (tmp_path,))
    with pytest.raises(CoderError, match="container image"):
        refuse_managed(Path("/opt/coder"), {}, NOTHING)
    monkeypatch.setattr(managed_program, "is_windows", lambda: True)
    assert refuse_managed(Path("/opt/coder"), {}, NOTHING) == Path("/opt/coder")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("coder-agent.service", "[Service]\nExecStart=/usr/local/lib/coder-agent/coder agent --self-upgrade\n"),
        ("com.coder.coder-agent.plist", "<array><string>/usr/local/lib/coder-agent/coder</string></array>"),
    ],
)
def test_service_of_an_agent_refuses(tmp_path: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / name).write_text(text)
    monkeypatch.setattr(managed_program, "UNIT_FOLDERS", (tmp_path,))
    with pytest.raises(CoderError, match="agent"):
        refuse_managed(Path("/usr/local/lib/coder-agent/coder"), {}, NOTHING)
    assert refuse_managed(tmp_path / "coder", {}, NOTHING) == tmp_path / "coder"


def test_installed_file_is_not_refused(tmp_path: Path) -> None:
    """A shell of an agent where the user installed another program."""
    env = {"CODER": "true", "GIT_SSH_COMMAND": "/tmp/coder.x/coder gitssh --", "LOCALAPPDATA": "/Users/ana"}
    other = answers("dpkg-query", "diversion by dash from: /usr/bin/coder\n")
    assert refuse_managed(tmp_path / "coder", env, other) == tmp_path / "coder"
