"""The init script for Windows, executed by the interpreter of the test kit on a machine in memory."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from coder.domain.agents.init_scripts import attach_command, init_script
from tests.kit.wine.powershell import Session

URL = "https://coder.example.com"
PROGRAM = b"MZ program"
SUM = f"{hashlib.sha256(PROGRAM).hexdigest()}  coder-windows-amd64.exe\n".encode()
TEMP = "C:\\Users\\Zoë O'Müller\\AppData\\Local\\Temp"
BINARY = f"{TEMP}\\sshd.exe"


@dataclass
class Machine:
    """Windows machine in memory; `answers` are the program's downloads, the last one repeated."""

    answers: list[tuple[int, bytes]] = field(default_factory=lambda: [(200, PROGRAM)])
    version: str = "Coder v2.34.0"
    exit_code: int | None = None
    files: dict[str, bytes] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    started: list[tuple[str, list[str], dict[str, str]]] = field(default_factory=list)
    slept: list[int] = field(default_factory=list)
    arch: str = "amd64"

    def fetch(self, url: str) -> tuple[int, bytes]:
        if "/api/v2/init-script/" in url:
            return 200, (init_script("windows", self.arch, URL) or "").encode()
        if url.endswith(".sha256"):
            return 200, SUM
        assert url == f"{URL}/bin/coder-windows-{self.arch}.exe"
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def names(self) -> list[str]:
        return list(self.files)

    def read(self, path: str) -> bytes:
        return self.files[path]

    def write(self, path: str, data: bytes) -> None:
        if len(data) > 1 << 20:
            raise OSError(28, "There is not enough space on the disk.")
        self.files[path] = data

    def move(self, source: str, target: str) -> None:
        assert target not in self.files, "Move-Item does not replace"
        self.files[target] = self.files.pop(source)

    def remove(self, path: str) -> None:
        if path in self.held:
            raise PermissionError(13, "The process cannot access the file")
        del self.files[path]

    def run(self, path: str, arguments: list[str], env: dict[str, str]) -> list[str]:
        assert (path, arguments) == (BINARY, ["--version"])
        return [self.version] if self.version else []

    def start(self, path: str, arguments: list[str], env: dict[str, str]) -> Any:
        self.started.append((path, arguments, env))
        return SimpleNamespace(WaitForExit=lambda _: self.exit_code is not None, ExitCode=self.exit_code)

    def sleep(self, seconds: int) -> None:
        self.slept.append(seconds)
        if len(self.slept) > 2:
            raise KeyboardInterrupt


def attach(machine: Machine, proxy: Any = None) -> Session:
    """Run the line that the product prints."""
    session = Session(machine, {"TEMP": TEMP, "Path": "C:\\windows"})
    session.statics = {
        "[Net.ServicePointManager]::SecurityProtocol": 768,
        "[Net.SecurityProtocolType]::Tls12": 3072,
        "[Net.WebRequest]::DefaultWebProxy": proxy,
        "[Net.CredentialCache]::DefaultNetworkCredentials": "the user's",
    }
    try:
        session.execute(attach_command(URL, "windows", machine.arch, "T"))
    except KeyboardInterrupt:
        session.output.append("interrupted")
    return session


@pytest.mark.parametrize("arch", ["amd64", "arm64"])
def test_line_starts_verified_program(arch: str) -> None:
    machine = Machine(arch=arch)
    session = attach(machine)
    ((path, arguments, env),) = machine.started
    assert (path, arguments, machine.files[path]) == (BINARY, ["agent"], PROGRAM)
    assert env["CODER_AGENT_TOKEN"] == "T" and env["CODER_AGENT_URL"] == f"{URL}/"
    assert env["CODER_AGENT_AUTH"] == "token"
    assert session.statics["[Net.ServicePointManager]::SecurityProtocol"] & 3072
    assert machine.slept == [] and f'& "{BINARY}" agent install' in session.output[-1]
    assert any("Windows 11 on arm64" in line for line in session.output) is (arch == "arm64")


@pytest.mark.parametrize("body", [PROGRAM[:5], b"", b"<html>sign in</html>"], ids=["half", "empty", "page"])
def test_wrong_download_is_fetched_again(body: bytes) -> None:
    machine = Machine([(200, body), (200, PROGRAM)])
    session = attach(machine)
    assert machine.files[BINARY] == PROGRAM and machine.slept == [30] and len(machine.started) == 1
    assert any("the server says" in line for line in session.output)


def test_wrong_hash_starts_nothing() -> None:
    machine = Machine([(200, b"another program")])
    session = attach(machine)
    assert session.output[-1] == "interrupted" and machine.started == [] and BINARY not in machine.files


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((404, b""), "build/build.py --platform windows-amd64"),
        ((407, b""), "(407)"),
        ((502, b""), "next try in 30 seconds"),
        ((200, bytes(2 << 20)), "There is not enough space on the disk."),
    ],
    ids=["no program", "proxy login", "bad gateway", "full disk"],
)
def test_failed_download_is_explained(answer: tuple[int, bytes], expected: str) -> None:
    machine = Machine([answer])
    session = attach(machine)
    assert any(expected in line for line in session.output) and machine.started == []


def test_proxy_gets_users_login() -> None:
    proxy = SimpleNamespace(Credentials=None)
    attach(Machine(), proxy)
    assert proxy.Credentials == "the user's"


def test_running_program_is_renamed() -> None:
    machine = Machine(files={BINARY: b"running", f"{BINARY}.old1": b"older", f"{BINARY}.old2": b"held"})
    machine.held = {f"{BINARY}.old2"}
    attach(machine)
    assert machine.files[BINARY] == PROGRAM and machine.files[f"{BINARY}.old4"] == b"running"
    assert f"{BINARY}.old1" not in machine.files and f"{BINARY}.old2" in machine.files


@pytest.mark.parametrize(
    ("version", "code", "expected"),
    [
        ("", None, "is not the agent"),
        ("Welcome", None, "is not the agent"),
        ("Coder v2", 1, "the agent ended with code 1"),
    ],
)
def test_failed_start_stays_readable(version: str, code: int | None, expected: str) -> None:
    machine = Machine(version=version, exit_code=code)
    session = attach(machine)
    assert any(expected in line for line in session.output) and machine.slept == [86400]
