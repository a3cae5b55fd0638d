"""Directories of scripts: private to this user, whatever other users put into a shared temporary directory."""

from __future__ import annotations

import os
import stat
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trio

from coder.agent.state import AgentState, Identity
from coder.agent.workspace import script_directories, scripts
from coder.agent.workspace.logs import LogQueue
from coder.agent.workspace.script_directories import ScriptDirectories
from coder.agent.workspace.scripts import ScriptRunner, Stage, Status
from coder.rpc.proto import agent_pb2

STRANGER = 4321
"User id of another user."
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")


class Runner:
    """Script runner in a shared temporary directory."""

    def __init__(self, shared: Path, home: Path) -> None:
        self.shared = shared
        self.queue = LogQueue(lambda: datetime.now(UTC))
        self.state = AgentState(Identity("me", home, "/bin/sh"), "t", "http://x", "/bin/coder")
        self.state.manifest = agent_pb2.Manifest(workspace_name="w")
        self.runner = ScriptRunner(self.state, self.queue, self._report, shared, shared)

    async def _report(self, _: agent_pb2.Timing) -> None:
        pass

    async def run(self, text: str, source: uuid.UUID, log_path: str = "") -> None:
        script = agent_pb2.WorkspaceAgentScript(script=text, log_path=log_path, log_source_id=source.bytes)
        with trio.fail_after(60):
            assert await self.runner.run(script, Stage.START) == Status.OK, self.lines()

    def lines(self) -> list[str]:
        return [entry.output for _, entry in self.queue._lines]


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    shared, home = tmp_path / "tmp", tmp_path / "home"
    shared.mkdir()
    shared.chmod(0o1777)
    home.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(shared))
    return Runner(shared, home)


async def test_each_script_has_own_directory(runner: Runner) -> None:
    runner.runner.prepare()
    first, second = uuid.uuid4(), uuid.uuid4()
    for source in (first, second):
        await runner.run("umask 0; echo >$CODER_SCRIPT_DATA_DIR/state; echo $CODER_SCRIPT_DATA_DIR", source)
    base = runner.shared / "coder-script-data"
    assert runner.lines() == [f"{base}/{first}", f"{base}/{second}"]
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [base, *base.iterdir()]}
    assert modes == dict.fromkeys(["coder-script-data", "bin", str(first), str(second)], 0o700)


async def test_wide_modes_are_narrowed(runner: Runner) -> None:
    source = uuid.uuid4()
    base = runner.shared / "coder-script-data"
    for folder in (base, base / "bin", base / str(source)):
        folder.mkdir()
        folder.chmod(0o777)
    await runner.run("echo $CODER_SCRIPT_BIN_DIR", source)
    assert runner.lines() == [f"{base}/bin"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in (base, base / "bin", base / str(source))} == {0o700}


def _strangers_folder(base: Path, _: Path) -> None:
    (base / "bin").mkdir(parents=True)
    os.chown(base, STRANGER, STRANGER)
    os.chown(base / "bin", STRANGER, STRANGER)


def _strangers_bin(base: Path, _: Path) -> None:
    (base / "bin").mkdir(parents=True)
    os.chown(base / "bin", STRANGER, STRANGER)


def _link(base: Path, target: Path) -> None:
    (target / "bin").mkdir(parents=True)
    base.symlink_to(target)


def _link_in_folder(base: Path, target: Path) -> None:
    base.mkdir()
    target.mkdir()
    (base / "bin").symlink_to(target)


def _file(base: Path, _: Path) -> None:
    base.write_text("")


@pytest.mark.parametrize(
    "plant",
    [
        pytest.param(_strangers_folder, marks=as_root),
        pytest.param(_strangers_bin, marks=as_root),
        _link,
        _link_in_folder,
        _file,
    ],
)
async def test_planted_directory_is_not_used(
    runner: Runner, tmp_path: Path, plant: Callable[[Path, Path], None]
) -> None:
    base, target = runner.shared / "coder-script-data", tmp_path / "target"
    plant(base, target)
    runner.runner.prepare()
    own = runner.shared / f"coder-script-data-{os.geteuid()}"
    assert runner.state.script_bin == own / "bin"
    source = uuid.uuid4()
    await runner.run("echo >$CODER_SCRIPT_DATA_DIR/state; echo $PATH", source)
    assert runner.lines()[0].split(":")[0] == str(own / "bin")
    assert (own / str(source) / "state").exists() and not list(tmp_path.glob("target/**/state"))


@as_root
def test_home_replaces_planted_names(runner: Runner) -> None:
    for name in ("coder-script-data", f"coder-script-data-{os.geteuid()}"):
        _strangers_folder(runner.shared / name, runner.shared)
    runner.runner.prepare()
    assert runner.state.script_bin == runner.state.identity.home / ".coder-script-data/bin"


def test_replaceable_parent_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared, home = tmp_path / "tmp", tmp_path / "home"
    shared.mkdir()
    shared.chmod(0o777)
    home.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(shared))
    assert ScriptDirectories(shared, home).base() == home / ".coder-script-data"


async def test_removed_directory_is_checked_again(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cleaner of temporary files removed it, and another user created it."""
    runner.runner.prepare()
    base = runner.shared / "coder-script-data"
    base.rename(base.with_name("removed"))
    _file(base, base)
    monkeypatch.setattr(scripts, "CHECK_INTERVAL", 0.01)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(runner.runner.keep_directories)
            while runner.state.script_bin == base / "bin":
                await trio.sleep(0.01)
            nursery.cancel_scope.cancel()
    assert runner.state.script_bin == runner.shared / f"coder-script-data-{os.geteuid()}/bin"


async def test_missing_directories_are_said(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> Path:
        raise PermissionError(1, "not here", str(path))

    monkeypatch.setattr(script_directories, "make_private", refuse)
    runner.runner.prepare()
    await runner.run("echo ran ${CODER_SCRIPT_BIN_DIR-unset}", uuid.uuid4())
    assert runner.state.script_bin is None
    said, ran = runner.lines()
    assert said.startswith("the script has no directories of its own: ") and "not here" in said
    assert ran == "ran unset"


# ---- logs


def _log_link(path: Path, victim: Path) -> None:
    path.symlink_to(victim)


def _log_second_name(path: Path, victim: Path) -> None:
    os.link(victim, path)


def _log_of_stranger(path: Path, _: Path) -> None:
    path.write_text("")
    path.chmod(0o666)
    os.chown(path, STRANGER, STRANGER)


def _log_pipe(path: Path, _: Path) -> None:
    os.mkfifo(path, 0o666)


@pytest.mark.parametrize(
    "plant", [_log_link, _log_second_name, _log_pipe, pytest.param(_log_of_stranger, marks=as_root)]
)
async def test_planted_log_is_not_written(runner: Runner, tmp_path: Path, plant: Callable[[Path, Path], None]) -> None:
    victim, planted = tmp_path / "victim", runner.shared / "coder-startup-script.log"
    victim.write_text("untouched")
    plant(planted, victim)
    source = uuid.uuid4()
    await runner.run("echo a secret", source, planted.name)
    assert victim.read_text() == "untouched"
    assert planted.is_fifo() or planted.read_text() in {"untouched", ""}
    kept = runner.shared / f"coder-script-data/logs/coder-script-{source}.log"
    assert kept.read_text() == "a secret\n"
    assert runner.lines() == ["a secret"]


async def test_log_may_be_a_device(runner: Runner) -> None:
    await runner.run("echo one", uuid.uuid4(), "/dev/null")
    assert not (runner.shared / "coder-script-data/logs").exists()
