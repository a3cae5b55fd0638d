"""An agent of an older version beside a newer server: it goes on as the server's program, its terminals and commands
with it, in the same process.

The new one is the program under test behind a shell script, the old one this source tree, saying another version.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

import pytest
import trio

from coder.base.own_binary import own_name
from coder.base.version import BUILD_VERSION
from coder.net.websocket import WebSocketStream
from coder.rpc.proto import provisioner_pb2
from tests.kit.agents.scripted_agent import AgentWorld, eventually, workspace_world
from tests.kit.agents.terminals import open_terminal, read_until, type_text
from tests.kit.server.server_process import program_under_test

ROOT = Path(__file__).resolve().parents[2]
OLD = "v2.33.0"
pytestmark = [pytest.mark.system, pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")]


def program(path: Path, version: str = "", *, first: str = "") -> Path:
    """The program under test as one file, or, with a version, this source tree that says it; `first` is shell that runs
    before it."""
    start = shlex.join(program_under_test())
    if version:
        code = f"import coder.base.version as v; v.BUILD_VERSION = {version!r}; "
        code += "import coder.agent.upgrade.upgrader as u; u.DOWNLOAD_SPREAD = 0.0; from coder.cli.main import main; "
        path.with_suffix(".py").write_text(f"{code}raise SystemExit(main())\n")
        start = shlex.join([sys.executable, str(path.with_suffix(".py"))])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\nexport PYTHONPATH="{ROOT}" CODER_SELF="$0"\n{first}\nexec {start} "$@"\n')
    path.chmod(0o755)
    return path


@dataclass
class Agent:
    view: AgentWorld
    process: trio.Process
    log: Path
    home: Path
    argv: list[str]
    env: dict[str, str]

    async def start(self) -> None:
        """Once more, as a service manager does."""
        with self.log.open("ab") as out:
            self.process = await trio.lowlevel.open_process(
                self.argv,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    async def says(self, text: str, times: int = 1) -> None:
        async def look() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            return self.log.read_text().count(text) >= times

        try:
            await eventually(look, seconds=60)
        except trio.TooSlowError:
            raise AssertionError(self.log.read_text()) from None

    async def terminal(self, reconnect: UUID, command: str = "") -> WebSocketStream:
        return await open_terminal(self.view, reconnect, command)

    async def shown(self) -> dict[str, object]:
        return dict(await self.view.agent())


@asynccontextmanager
async def old_agent(folder: Path, *flags: str) -> AsyncIterator[Agent]:
    """Connected; its start script runs until `folder/go` is there, so that nothing is upgraded before."""
    wait = f"while [ ! -e {folder}/go ]; do sleep 0.05; done"
    scripts = [
        provisioner_pb2.Script(display_name="Wait", script=wait, run_on_start=True, timeout_seconds=600),
        provisioner_pb2.Script(display_name="Stop", script=f"touch {folder}/stopped", run_on_stop=True),
    ]
    (folder / "site/bin").mkdir(parents=True)
    log, home = folder / "log", folder / "home"
    home.mkdir()
    async with workspace_world(agent_fields={"scripts": scripts}, site_dir=str(folder / "site")) as view:
        env = {name: value for name, value in os.environ.items() if not name.startswith("CODER_")}
        env |= {"HOME": str(home), "TMPDIR": str(home), "CODER_AGENT_TOKEN": view.token}
        env |= {"CODER_AGENT_URL": view.world.ctx.access_url, "CODER_AGENT_SELF_UPGRADE": "true"}
        argv = [str(program(folder / "old", OLD)), "agent", *flags]
        with log.open("wb") as out:
            process = await trio.lowlevel.open_process(
                argv,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        agent = Agent(view, process, log, home, argv, env)
        try:
            await agent.says("joined the overlay")
            yield agent
        finally:
            agent.process.send_signal(signal.SIGTERM)
            with trio.move_on_after(60) as scope, trio.CancelScope(shield=True):
                await agent.process.wait()
            if scope.cancelled_caught:
                agent.process.kill()
                await agent.process.wait()


async def type_line(stream: WebSocketStream, text: str) -> None:
    await type_text(stream, f"{text}\n")


def descendants(pid: int) -> set[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return {int(word) for word in found.stdout.split()}


async def test_shell_survives_upgrade(tmp_path: Path) -> None:
    async with old_agent(tmp_path) as agent:
        ident = uuid4()
        first = await agent.terminal(ident, "/bin/sh")
        await type_line(first, "x=kept; echo $$ $((40+2))")
        await read_until(first, b" 42")
        shells = descendants(agent.process.pid)
        assert (await agent.shown())["version"] == OLD
        # Nobody reads while the programs change: what is said meanwhile must not be lost.
        await type_line(
            first, f"while [ ! -e {tmp_path}/enough ]; do i=$((i+1)); echo n$i.; sleep 0.02; done; echo end"
        )
        await read_until(first, b"n3.")
        program(tmp_path / "site/bin" / own_name())
        (tmp_path / "go").touch()
        await agent.says("took over from another program")
        await trio.aclose_forcefully(first)

        async def told() -> bool:
            found = await agent.shown()
            return found["version"] == BUILD_VERSION and found["status"] == "connected"

        await eventually(told, seconds=60)
        assert (await agent.shown())["lifecycle_state"] == "ready", "its start scripts are not run again"
        assert agent.log.read_text().count("handing over to another program") == 1
        assert shells & descendants(agent.process.pid), "the same process has the same shell"
        later = await agent.terminal(uuid4(), "/bin/sh")
        await type_line(later, "sed -n 's/^SigBlk:/blocks /p' /proc/self/status")
        await read_until(later, b"blocks \t0000000000000000")  # signals reach shells that are started now
        await trio.aclose_forcefully(later)
        second = await agent.terminal(ident)
        (tmp_path / "enough").touch()
        seen = await read_until(second, b"end")
        numbers = [int(found) for found in re.findall(rb"\bn(\d+)\.", seen)]
        assert numbers == list(range(numbers[0], numbers[-1] + 1)) and len(numbers) > 10, seen
        await type_line(second, "echo $x-$((1+1))")
        await read_until(second, b"kept-2")
        await type_line(second, "exit")
        with trio.fail_after(60):
            while await second.receive_message() is not None:
                pass
        await trio.aclose_forcefully(second)

        async def causes() -> list[str]:
            path = f"/api/v2/workspaceagents/{agent.view.agent_id}/disconnects"
            answer = (await agent.view.world.get(path)).json()
            return [item["cause"] for item in answer if item["cause"] == "upgraded"]

        await eventually(causes, seconds=60)


async def test_unrunnable_program_is_refused(tmp_path: Path) -> None:
    async with old_agent(tmp_path) as agent:
        ident = uuid4()
        first = await agent.terminal(ident, "/bin/sh")
        await type_line(first, "echo $((40+2))")
        await read_until(first, b"42")
        program(tmp_path / "site/bin" / own_name(), first="echo cannot run on this machine; exit 1")
        (tmp_path / "go").touch()
        await agent.says("the server's program was refused")
        await type_line(first, "echo still-$((1+1))")
        await read_until(first, b"still-2")
        assert (await agent.shown())["version"] == OLD
        verdicts = list(agent.home.rglob("refused.json"))
        assert len(verdicts) == 1
        (refused,) = json.loads(verdicts[0].read_text())["refused"]
        assert refused["version"] == BUILD_VERSION
        await trio.aclose_forcefully(first)


async def test_failed_exec_keeps_shells(tmp_path: Path) -> None:
    """It passes every check; then it cannot be executed, and the old one comes back with everything."""
    async with old_agent(tmp_path) as agent:
        ident = uuid4()
        first = await agent.terminal(ident, "/bin/sh")
        await type_line(first, "x=kept; echo $((40+2))")
        await read_until(first, b"42")
        vanish = 'case "$*" in *can-take-over*) rm -f "$0";; esac'
        program(tmp_path / "site/bin" / own_name(), first=vanish)
        (tmp_path / "go").touch()
        await agent.says("the server's program was refused")
        await agent.says("joined the overlay", times=2)
        await trio.aclose_forcefully(first)
        second = await agent.terminal(ident)
        await type_line(second, "echo $x-$((1+1))")
        await read_until(second, b"kept-2")
        assert "could not be started" in agent.log.read_text()
        assert (await agent.shown())["version"] == OLD
        await trio.aclose_forcefully(second)


async def test_stop_during_handover_is_obeyed(tmp_path: Path) -> None:
    async with old_agent(tmp_path) as agent:
        # The new program, before it has a receiver.
        ask = '[ -z "$CODER_AGENT_HANDOVER" ] || kill -TERM $$'
        program(tmp_path / "site/bin" / own_name(), first=ask)
        (tmp_path / "go").touch()
        with trio.fail_after(60):
            await agent.process.wait()
        assert agent.process.returncode == 0 and (tmp_path / "stopped").exists(), agent.log.read_text()
        assert "took over from another program" in agent.log.read_text()


async def test_crashing_program_is_tried_twice(tmp_path: Path) -> None:
    async with old_agent(tmp_path) as agent:
        program(tmp_path / "site/bin" / own_name(), first='[ -z "$CODER_AGENT_HANDOVER" ] || exit 9')
        (tmp_path / "go").touch()
        for attempt in range(1, 3):
            with trio.fail_after(60):
                await agent.process.wait()
            assert agent.process.returncode == 9, agent.log.read_text()
            assert agent.log.read_text().count("handing over to another program") == attempt
            await agent.start()
        await agent.says("it took over 2 times and did not last")
        assert (await agent.shown())["version"] == OLD
