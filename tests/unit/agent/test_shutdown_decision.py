"""Concurrent reasons for an agent's end: the decision alone, and whole agents."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path

import pytest
import trio
import trio.testing

from coder.agent.agent import AgentRole
from coder.agent.config import AgentConfig
from coder.agent.network.overlay import AgentNetwork
from coder.agent.shutdown_decision import Claimed, ProgramUpgrade, ShutdownDecision, ShutdownReason, Stop
from coder.agent.ssh.acceptor import SshAcceptor
from coder.agent.upgrade import upgrader
from coder.agent.upgrade.upgrader import NewProgram, Upgrader
from coder.agent.workspace.processes import Processes
from coder.agent.workspace.scripts import ScriptRunner
from coder.base.secret import Secret
from coder.net.policy import DialPolicy
from coder.rpc.proto import provisioner_pb2
from tests.kit.agents.scripted_agent import AgentWorld, workspace_world

UPGRADE = ProgramUpgrade(NewProgram(Path("/fetched"), "v99.0.0", "0" * 64))
ALL: tuple[ShutdownReason, ...] = (Stop(), Claimed(), UPGRADE)


@pytest.mark.parametrize(("first", "second"), list(product(ALL, ALL)), ids=lambda how: type(how).__name__)
async def test_first_reason_wins_over_upgrade(first: ShutdownReason, second: ShutdownReason) -> None:
    end = ShutdownDecision()
    assert end.choose(first)
    overtakes = isinstance(first, ProgramUpgrade) and not isinstance(second, ProgramUpgrade)
    assert end.choose(second) is overtakes
    assert await end.wait() == end.finalize() == (second if overtakes else first)
    assert end.upgrade_preparation.cancel_called is overtakes
    assert end.upgrade_search.cancel_called is not (first == second == UPGRADE)


@pytest.mark.parametrize(("first", "second"), list(product(ALL, ALL)), ids=lambda how: type(how).__name__)
async def test_sealed_decision_is_final(first: ShutdownReason, second: ShutdownReason) -> None:
    end = ShutdownDecision()
    end.choose(first)
    end.finalize()
    assert not end.choose(second)
    assert await end.wait() == first and not end.upgrade_preparation.cancel_called


class Scene:
    """Whole agent with a ready upgrade, and an SSH session that ends with all others."""

    def __init__(self, view: AgentWorld, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        token = Secret(view.token)
        policy = DialPolicy(view.world.url, token=token)
        config = AgentConfig(policy, token, folder, folder, "coder", self_upgrade=True, state_dir=folder / "state")
        self.agent = AgentRole(config)
        self.given: bool | None = None
        self.left, self.waits = trio.Event(), trio.Event()
        self.settling, self.go_on, self.cron_ended = trio.Event(), trio.Event(), trio.Event()
        settle, run_cron, wait_idle = AgentRole._drain, ScriptRunner.run_cron, Upgrader._wait_idle

        async def found(_: Upgrader, *, hurried: bool) -> NewProgram:
            return UPGRADE.program

        async def noted(searching: Upgrader, program: NewProgram) -> bool:
            self.waits.set()
            return await wait_idle(searching, program)

        async def held(agent: AgentRole, network: AgentNetwork) -> None:
            self.settling.set()
            await self.go_on.wait()
            await settle(agent, network)

        async def cron(runner: ScriptRunner, scripts: list[provisioner_pb2.Script]) -> None:
            await run_cron(runner, scripts)  # type: ignore[arg-type]
            self.cron_ended.set()

        leave = AgentNetwork.leave

        async def leave_last(network: AgentNetwork) -> None:
            await trio.testing.wait_all_tasks_blocked()  # waiters for this end have seen it
            await leave(network)

        monkeypatch.setattr(AgentNetwork, "leave", leave_last)

        async def check(*_: object) -> None:
            """The agent still works."""

        monkeypatch.setattr(upgrader, "check_again", check)
        monkeypatch.setattr(Upgrader, "_newer_program", found)
        monkeypatch.setattr(Upgrader, "_wait_idle", noted)
        monkeypatch.setattr(AgentRole, "_drain", held)
        monkeypatch.setattr(ScriptRunner, "run_cron", cron)
        monkeypatch.setattr(SshAcceptor, "terminate_all", lambda _: self.left.set())

    async def session(self) -> None:
        with self.agent.state.activity.of("SSH connections"):
            await self.left.wait()

    async def run(self) -> None:
        self.given = await self.agent.run()

    def end(self, how: ShutdownReason) -> None:
        if isinstance(how, Stop):
            self.agent.stop()
        else:
            self.agent._restart_for_owner()


@asynccontextmanager
async def pending_upgrade(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    """Ends when the agent has ended."""
    scripts = [
        provisioner_pb2.Script(display_name="Stop", script=f"touch {folder}/stopped", run_on_stop=True),
        provisioner_pb2.Script(display_name="Cron", script="true", cron="@yearly"),
    ]
    async with workspace_world(agent_fields={"scripts": scripts}) as view:
        scene = Scene(view, folder, monkeypatch)
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(scene.session)
                nursery.start_soon(scene.run)
                await scene.waits.wait()
                yield scene


@pytest.mark.parametrize("moment", ["waiting", "settling"])
@pytest.mark.parametrize("how", [Stop(), Claimed()], ids=lambda how: type(how).__name__)
async def test_other_reason_overtakes_upgrade(
    how: ShutdownReason, moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pending_upgrade(tmp_path, monkeypatch) as scene:
        assert scene.agent.state.processes is not None
        command = await scene.agent.state.processes.start("exec sleep 1000", "", {}, background=True)
        if moment == "settling":
            scene.left.set()
            await scene.settling.wait()
        scene.end(how)
    assert scene.given is isinstance(how, Claimed) and scene.agent.handover is None
    assert command.exited is not None, "no process is kept for another program"
    assert (tmp_path / "stopped").exists() is isinstance(how, Stop)


async def test_upgrade_keeps_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with pending_upgrade(tmp_path, monkeypatch) as scene:
        processes = scene.agent.state.processes
        assert isinstance(processes, Processes)
        command = await processes.start("exec sleep 1000", "", {}, background=True)
        scene.left.set()
        await scene.settling.wait()
        await scene.cron_ended.wait()
        scene.go_on.set()
    left = scene.agent.handover
    assert left is not None and (left.program, left.digest) == ("/fetched", "0" * 64)
    assert command.exited is None and [one.ident for one in left.processes] == [command.id]
    output = left.processes[0].output
    assert output is not None
    os.close(output)
    command.send("kill")
    await command.process.wait()
    assert command.process.stdout is not None
    await command.process.stdout.aclose()
    assert not (tmp_path / "stopped").exists()
