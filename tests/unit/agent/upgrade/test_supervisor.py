"""Upgrade by a process that waits for the newer program, as on Windows; here with programs of this system."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from coder.agent import agent
from coder.agent.platform import system
from coder.agent.upgrade import handover as handovers
from coder.agent.upgrade import supervisor, upgrader
from coder.agent.upgrade.handover import Handover, Restart, encode, take_over
from coder.agent.upgrade.supervisor import VARIABLE, Supervisor, find_supervisor, hand_over, report_takeover
from coder.rpc.proto import agent_pb2

STATE = Handover(
    version="v2.34.0",
    target="v2.35.0",
    program="",
    states=[(4, 1.5)],
    manifest=b"\x00manifest",
    terminals=[],
    processes=[],
    units=None,
    digest="aa",
)
HEAD = f"""#!{sys.executable}
import json, os, sys
state = json.load(sys.stdin)
with open(sys.argv[0] + ".log", "a") as log:
    log.write(json.dumps([state["states"], state["refused"], sys.argv[1:]]) + "\\n")
pipe = int(os.environ["{VARIABLE}"])
"""
CONNECTS = 'os.write(pipe, b"T")\n'


@pytest.fixture(autouse=True)
def _without_execve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "HAS_EXECVE", False)
    monkeypatch.setattr(supervisor, "_own", None)


def program(path: Path, body: str) -> str:
    path.write_text(HEAD + body)
    path.chmod(0o755)
    return str(path)


def upgraded(to: str) -> Handover:
    """Hand over to a program; returns the state with which this process continues."""
    restart = Restart(("agent", "--x"), dict(os.environ))
    return hand_over(replace(STATE, program=to), restart)


def runs(path: str) -> list[list[object]]:
    return [json.loads(line) for line in Path(f"{path}.log").read_text().splitlines()]


def test_connected_program_ends_agent(tmp_path: Path) -> None:
    new = program(tmp_path / "new", f"{CONNECTS}sys.exit(5)\n")
    with pytest.raises(SystemExit) as end:
        upgraded(new)
    assert end.value.code == 5
    assert runs(new) == [[[[4, 1.5]], "", ["agent", "--x"]]]


@pytest.mark.parametrize("code", [0, 3])
def test_failed_start_falls_back(code: int, tmp_path: Path) -> None:
    state = upgraded(program(tmp_path / "new", f"sys.exit({code})\n"))
    assert state.refused == f"it ended with code {code} before it had connected"
    assert (state.states, state.manifest, state.digest) == (STATE.states, STATE.manifest, "aa")


def test_unstartable_program_falls_back(tmp_path: Path) -> None:
    assert upgraded(str(tmp_path / "missing")).refused == "it could not be started: No such file or directory"


def passing_on(to: str) -> str:
    following = replace(STATE, program=to, target="v2.36.0", digest="bb")
    return f"{CONNECTS}os.write(pipe, {encode(following)!r}) if not state['refused'] else sys.exit(7)\n"


def test_second_upgrade_keeps_one_supervisor(tmp_path: Path) -> None:
    newest = program(tmp_path / "newest", f"{CONNECTS}sys.exit(6)\n")
    new = program(tmp_path / "new", passing_on(newest))
    with pytest.raises(SystemExit) as end:
        upgraded(new)
    assert end.value.code == 6 and len(runs(new)) == len(runs(newest)) == 1


def test_failed_second_upgrade_restarts_previous(tmp_path: Path) -> None:
    newest = program(tmp_path / "newest", "sys.exit(9)\n")
    new = program(tmp_path / "new", passing_on(newest))
    with pytest.raises(SystemExit) as end:
        upgraded(new)
    assert end.value.code == 7
    assert [run[1] for run in runs(new)] == ["", "it ended with code 9 before it had connected"]


def test_previous_also_fails_falls_back(tmp_path: Path) -> None:
    newest = program(tmp_path / "newest", "sys.exit(9)\n")
    new = program(tmp_path / "new", f"state['refused'] and sys.exit(8)\n{passing_on(newest)}")
    state = upgraded(new)
    assert (state.refused, state.digest) == ("it ended with code 9 before it had connected", "bb")


def test_program_reports_takeover_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    assert not find_supervisor({}) and not report_takeover()
    environ = {VARIABLE: str(writing)}
    assert find_supervisor(environ) and environ == {} and not os.get_inheritable(writing)
    report_takeover()
    report_takeover()
    with pytest.raises(SystemExit) as end:
        upgraded("/newest")
    assert end.value.code == 0
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    assert said[:1] == b"T" and json.loads(said[1:])["program"] == "/newest"


def test_lost_supervisor_blocks_upgrade(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    monkeypatch.setattr(supervisor, "_own", Supervisor(writing))
    assert upgraded("/newest").refused.startswith("it could not be started")


def test_document_in_input_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "document").write_bytes(encode(STATE))
    before = os.dup(0)
    with (tmp_path / "document").open("rb") as document:
        os.dup2(document.fileno(), 0)
    try:
        assert take_over({handovers.VARIABLE: handovers.STANDARD_INPUT}) == STATE
    finally:
        os.dup2(before, 0)
        os.close(before)


@pytest.mark.parametrize("refused", ["", "it ended with code 9 before it had connected"])
async def test_resumed_agent_reports_takeover(refused: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that continues after a failed upgrade is connected, too: its end is the end of the service."""
    reports: list[str] = []
    refusals: list[str] = []

    class Upgrades:
        def __init__(self, *_words: object) -> None:
            pass

        def check_now(self) -> None:
            pass

        def refuse(self, _digest: str, _target: str, reason: str) -> None:
            refusals.append(reason)

        async def confirm_takeover(self, _digest: str) -> None:
            pass

        async def run(self) -> str:
            return "v2.35.0"

    monkeypatch.setattr(upgrader, "Upgrader", Upgrades)
    monkeypatch.setattr(agent, "report_takeover", lambda: reports.append("T"))
    found: Any = SimpleNamespace(
        config=SimpleNamespace(self_upgrade=True, state_dir=Path("/nowhere"), policy=None, upgrade_keyring=None),
        state=SimpleNamespace(activity=None),
        _outbox=None,
        _not_kept=(),
        _shutdown=SimpleNamespace(upgrade_search=trio.CancelScope(), choose=lambda _reason: None),
        _kept=replace(STATE, refused=refused),
    )
    await agent.AgentRole._watch_for_upgrade(found, agent_pb2.Manifest())
    assert reports == ["T"]
    assert refusals == ([refused] if refused else [])


def test_lost_supervisor_ends_no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    own = Supervisor(writing)
    monkeypatch.setattr(supervisor, "_own", own)
    with own._pipe:
        report_takeover()
    assert own._reported
