"""Handover from one program to the next, and failures of the next one."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from coder.agent.upgrade import handover as handover_module
from coder.agent.upgrade import signals
from coder.agent.upgrade.handover import (
    VARIABLE,
    Handover,
    KeptContainer,
    KeptProcess,
    KeptTerminal,
    KeptUnits,
    Restart,
    rehearse,
    replace_program,
    take_over,
)
from coder.base.errors import CoderError


class ExecSucceeded(BaseException):
    """The exec succeeded."""


def filled(terminal: int, output: int) -> Handover:
    return Handover(
        version="v1.0.0",
        target="v1.1.0",
        program="/new/coder",
        states=[(2, 1.5)],
        manifest=b"\x00\xff",
        terminals=[KeptTerminal("a", 1, terminal, b"\x1b[1m\xff")],
        processes=[
            KeptProcess("b", "sleep", "/", True, 2, 3.5, output, b"head", b"tail", 8, None, None),
            KeptProcess("c", "true", "/", False, 3, 3.5, None, b"", b"", 0, 4.5, 0),
        ],
        units=KeptUnits("/run/agent.sock", True, {"db": "started"}, {"app": ["db"]}),
        containers=[
            KeptContainer("/work/api", "c1", "dev", "/workspaces/api", "/work/api/.devcontainer/x/devcontainer.json")
        ],
    )


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Yield every program that would have been started, with its handover document."""
    calls: list[Any] = []

    def execve(path: str, argv: list[str], env: dict[str, str]) -> None:
        number = int(env[VARIABLE])
        inherited = os.get_inheritable(number)
        calls.append((path, argv, {**env, VARIABLE: str(os.dup(number))}, inherited))
        raise ExecSucceeded

    @contextmanager
    def notified() -> Iterator[int]:  # execve closes its writing end, and nothing else
        reading, writing = os.pipe()
        os.close(writing)
        yield reading

    monkeypatch.setattr(handover_module, "signals_to_pipe", notified)
    monkeypatch.setattr(os, "execve", execve)
    yield calls
    signals.release()


def test_handover_arrives_completely(started: list[Any]) -> None:
    terminal, output = os.pipe()
    left = filled(terminal, output)
    with pytest.raises(ExecSucceeded):
        replace_program(left, Restart(("agent", "--x"), {"A": "b"}))
    path, argv, env, inherited = started[0]
    assert (path, argv, env["A"], inherited) == ("/new/coder", ["/new/coder", "agent", "--x"], "b", True)
    assert os.get_inheritable(terminal) and os.get_inheritable(output)
    assert take_over(env) == left
    assert VARIABLE not in env, "children must not inherit the variable"
    assert not os.get_inheritable(terminal) and not os.get_inheritable(output), "shells inherit no other terminal"
    os.close(terminal)
    os.close(output)


def fails_to_execute(_path: str, _argv: list[str], _env: dict[str, str]) -> None:
    raise OSError(8, "Exec format error")


def has_no_descriptors(*_: Any) -> int:
    raise OSError(24, "Too many open files")


def disk_is_full(*_: Any, **__: Any) -> Any:
    raise OSError(28, "No space left on device")


OBSTACLES: dict[str, tuple[str, Any, str]] = {
    "execve": ("os.execve", fails_to_execute, "Exec format error"),
    "memfd_create": ("os.memfd_create", has_no_descriptors, "Too many open files"),
    "writing": ("os.fdopen", disk_is_full, "No space left on device"),
    "encoding": ("coder.agent.upgrade.handover.encode", lambda _: "\ud800".encode(), "surrogates not allowed"),
    "a defect": ("coder.agent.upgrade.handover._close_launcher_lock_on_exec", lambda: dict[str, str]()["x"], "x"),
}


@pytest.mark.parametrize("what", OBSTACLES)
def test_failed_exec_keeps_everything(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, broken, reason = OBSTACLES[what]
    terminal, output = os.pipe()
    before = signal.signal(signal.SIGQUIT, signal.default_int_handler)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(name, broken)
            if what != "execve":
                patch.setattr(os, "execve", lambda *_: None)
            left = filled(terminal, output)
            back = replace_program(left, Restart(("agent",), {}, (signal.SIGQUIT,)))
        assert back.refused.startswith("it could not be started: ") and reason in back.refused
        assert (back.terminals, back.processes, back.units) == (left.terminals, left.processes, left.units)
        assert signal.getsignal(signal.SIGQUIT) is signal.default_int_handler
        assert not os.get_inheritable(terminal) and not os.get_inheritable(output)
    finally:
        signal.signal(signal.SIGQUIT, before)
        os.close(terminal)
        os.close(output)


@pytest.mark.parametrize("half", ["\udc80", "\ud800"])
def test_non_utf8_texts_arrive(half: str, started: list[Any]) -> None:
    """A client names terminals, and writes commands, in JSON, which may hold half a surrogate pair."""
    terminal, output = os.pipe()
    left = filled(terminal, output)
    left.terminals[0].ident = left.processes[0].command = left.processes[0].workdir = half
    left.units = KeptUnits(half, True, {half: half}, {half: [half]})
    with pytest.raises(ExecSucceeded):
        replace_program(left, Restart((), {}))
    assert take_over(started[0][2]) == left
    os.close(terminal)
    os.close(output)


def test_launcher_lock_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[Any]) -> None:
    """The lock is inherited on purpose; a program that takes over holds its own, and would add one for each program
    before it."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "coder"))
    (tmp_path / ".lock").touch()
    held, other = os.open(tmp_path / ".lock", os.O_RDONLY), os.open(tmp_path, os.O_RDONLY)
    terminal, output = os.pipe()
    for number in (held, other):
        os.set_inheritable(number, True)
    with pytest.raises(ExecSucceeded):
        replace_program(filled(terminal, output), Restart((), {}))
    os.close(int(started[0][2][VARIABLE]))
    assert not os.get_inheritable(held) and os.get_inheritable(other)
    for number in (held, other, terminal, output):
        os.close(number)


def test_rehearsal_detects_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    rehearse()
    monkeypatch.setattr(os, "memfd_create", has_no_descriptors)
    with pytest.raises(OSError, match="Too many open files"):
        rehearse()


def test_ignored_signals_stay_ignored(started: list[Any]) -> None:
    before = signal.signal(signal.SIGQUIT, lambda *_: None)
    try:
        with pytest.raises(ExecSucceeded):
            replace_program(filled(0, 0), Restart(("agent",), {}, (signal.SIGQUIT,)))
        assert signal.getsignal(signal.SIGQUIT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGQUIT, before)
        os.close(int(started[0][2][VARIABLE]))


def test_normal_start_takes_nothing_over() -> None:
    assert take_over({}) is None


@pytest.mark.parametrize("document", [b"", b"{", b"{}", b"[]", b'{"version": 1}'])
def test_unreadable_document_is_an_error(tmp_path: Path, document: bytes) -> None:
    (tmp_path / "left").write_bytes(document)
    number = os.open(tmp_path / "left", os.O_RDONLY)
    with pytest.raises(CoderError, match="cannot be read"):
        take_over({VARIABLE: str(number)})


@pytest.mark.parametrize("odd", ["x", "-1", "999999"])
def test_invalid_variable_is_an_error(odd: str) -> None:
    with pytest.raises(CoderError, match="cannot be read"):
        take_over({VARIABLE: odd})
