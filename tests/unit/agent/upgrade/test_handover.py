"""What one program leaves to the next, and what happens when there is no next."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from coder.agent.upgrade.handover import (
    VARIABLE,
    Handover,
    KeptProcess,
    KeptTerminal,
    KeptUnits,
    Restart,
    replace_program,
    take_over,
)
from coder.base.errors import CoderError


class Started(BaseException):
    """The program would be another one now."""


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
    )


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every program that would have been started, and what it would have found."""
    calls: list[Any] = []

    def execve(path: str, argv: list[str], env: dict[str, str]) -> None:
        number = int(env[VARIABLE])
        inherited = os.get_inheritable(number)
        calls.append((path, argv, {**env, VARIABLE: str(os.dup(number))}, inherited))
        if path == "/new/coder" and "broken" in argv:
            raise OSError(8, "Exec format error")
        raise Started

    monkeypatch.setattr(os, "execve", execve)
    return calls


def test_everything_arrives_and_only_there(started: list[Any]) -> None:
    terminal, output = os.pipe()
    left = filled(terminal, output)
    with pytest.raises(Started):
        replace_program(left, Restart(("/old/python", "-m", "coder", "agent", "--x"), 3, {"A": "b"}))
    path, argv, env, inherited = started[0]
    assert (path, argv, env["A"], inherited) == ("/new/coder", ["/new/coder", "agent", "--x"], "b", True)
    assert os.get_inheritable(terminal) and os.get_inheritable(output)
    assert take_over(env) == left
    assert VARIABLE not in env, "children must not take it for theirs"
    assert not os.get_inheritable(terminal) and not os.get_inheritable(output), "shells get nobody else's terminal"
    os.close(terminal)
    os.close(output)


def test_a_program_that_cannot_start_leaves_the_old_one_with_everything(started: list[Any]) -> None:
    terminal, output = os.pipe()
    restart = Restart(("/old/coder", "agent", "broken"), 1, {})
    with pytest.raises(Started):
        replace_program(filled(terminal, output), restart)
    assert [call[1] for call in started] == [["/new/coder", "agent", "broken"], ["/old/coder", "agent", "broken"]]
    os.close(int(started[0][2][VARIABLE]))
    found = take_over(started[1][2])
    assert found is not None and found.refused == "it could not be started: Exec format error"
    assert found.terminals == filled(terminal, output).terminals
    os.close(terminal)
    os.close(output)


def test_signals_that_were_ignored_are_ignored_by_the_next(started: list[Any]) -> None:
    before = signal.signal(signal.SIGQUIT, lambda *_: None)
    try:
        with pytest.raises(Started):
            replace_program(filled(0, 0), Restart(("/old", "agent"), 1, {}, (signal.SIGQUIT,)))
        assert signal.getsignal(signal.SIGQUIT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGQUIT, before)
        os.close(int(started[0][2][VARIABLE]))


def test_who_was_started_by_somebody_else_takes_nothing_over() -> None:
    assert take_over({}) is None


@pytest.mark.parametrize("document", [b"", b"{", b"{}", b"[]", b'{"version": 1}'])
def test_what_cannot_be_read_is_one_clear_error(tmp_path: Path, document: bytes) -> None:
    (tmp_path / "left").write_bytes(document)
    number = os.open(tmp_path / "left", os.O_RDONLY)
    with pytest.raises(CoderError, match="cannot be read"):
        take_over({VARIABLE: str(number)})


@pytest.mark.parametrize("odd", ["x", "-1", "999999"])
def test_a_variable_that_names_nothing(odd: str) -> None:
    with pytest.raises(CoderError, match="cannot be read"):
        take_over({VARIABLE: odd})
