"""The agent's life: dial, take the manifest, join the overlay, run scripts, serve until told to stop.

The connection to the server is torn down and redialled as a whole when any of its parts fails
(docs/protocol/agents.md#calls). What lives longer - the overlay node, SSH sessions, queues of logs and states - is
opened once here and survives every reconnect.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from coder.agent.config import AgentConfig
from coder.agent.connection import ServerConnection, record_name
from coder.agent.devcontainers.table import Devcontainers
from coder.agent.ending import Ending, Given, LifeEnd, ProgramUpgrade, Stop
from coder.agent.guarded import guarded
from coder.agent.lifecycle import Lifecycle, State
from coder.agent.memory import stay_small
from coder.agent.network.overlay import AgentNetwork
from coder.agent.network.reconnecting_pty import PtyService
from coder.agent.prebuild_claim import NOBODY, wait_until_given
from coder.agent.reports.app_health import AppHealth
from coder.agent.reports.app_status import report_app_status
from coder.agent.reports.connection_reports import ReportQueue
from coder.agent.reports.flight_recorder import FlightRecorder
from coder.agent.reports.in_order import InOrder
from coder.agent.reports.metadata import MetadataCollector
from coder.agent.reports.outbox import Outbox
from coder.agent.ssh.acceptor import SshAcceptor
from coder.agent.state import AgentState
from coder.agent.upgrade.handover import Handover
from coder.agent.workspace import children, environment
from coder.agent.workspace.logs import LogQueue
from coder.agent.workspace.mcp_servers import ToolServers
from coder.agent.workspace.processes import Processes
from coder.agent.workspace.scripts import ScriptOutcome, ScriptRunner, Stage
from coder.agent.workspace.secret_files import write_secret_files
from coder.agent.workspace.sync_socket import SyncSocket
from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.base.retry import Backoff
from coder.base.version import BUILD_VERSION
from coder.net.errors import HttpError, NetError
from coder.rpc.errors import RpcClosed
from coder.rpc.proto import agent_pb2

if TYPE_CHECKING:
    from coder.agent.network.http_api import HttpApi
    from coder.agent.upgrade.upgrader import NewProgram, Upgrader

log = get_logger("agent")

FIRST_DELAY, LAST_DELAY = 0.1, 10.0
"Seconds between dials (docs/protocol/rpc.md#dialling-again)."
RETURN_DELAY, RETURN_WINDOW = 2.0, 600.0
"""Ours: a server that was lost less than ten minutes ago is most likely restarting, and somebody waits for it; until
then dials are at most two seconds apart."""
LOGS_GRACE = 1.0
"Seconds a workspace that is ready waits with saying so for its scripts' last lines to be taken (ours)."
REPORT_GRACE = 5.0
"Seconds for the last logs and states to be delivered at shutdown."


TIMINGS = 256
"Results of scripts kept while there is no connection (ours)."


class AgentRole:
    """One agent process."""

    def __init__(self, config: AgentConfig, kept: Handover | None = None) -> None:
        """`kept` is what the program before us left in this process."""
        self.config, self._kept = config, kept
        self.state = AgentState(
            identity=environment.find_identity(),
            token=config.token.reveal(),
            url=config.policy.url,
            executable=config.executable,
            block_file_transfer=config.block_file_transfer,
            block_local_forwarding=config.block_local_forwarding,
            block_reverse_forwarding=config.block_reverse_forwarding,
            log_file=config.log_file,
            debug_ports=frozenset(at[1] for at in (config.debug_address, config.prometheus_address) if at),
        )
        self.lifecycle = Lifecycle(lambda: datetime.now(UTC))
        self.logs = LogQueue(lambda: datetime.now(UTC))
        self.reports = ReportQueue()
        self.state.report = self.reports.note
        self.timings = InOrder[agent_pb2.WorkspaceAgentScriptCompletedRequest](TIMINGS)
        self._outbox = Outbox(
            {"log lines": self.logs, "states": self.lifecycle, "script results": self.timings, "sessions": self.reports}
        )
        self.scripts = ScriptRunner(self.state, self.logs, self._report_timing, config.log_dir, config.script_data_dir)
        self.metadata = MetadataCollector(self.state)
        self.app_health = AppHealth(self.state)
        self.devcontainers = (
            Devcontainers(self.state, self.logs, config.devcontainers) if config.devcontainers is not None else None
        )
        self.state.containers = self.devcontainers
        self.recorder = FlightRecorder(config.state_dir)
        self._manifest_seen = trio.Event()
        self._served = False
        "Whether the current connection brought a manifest."
        self._end = LifeEnd()
        self._upgrader: Upgrader | None = None
        self.handover: Handover | None = None
        "What an upgrade leaves to the next program, once `run` has returned."
        self._connected = False

    def stop(self) -> None:
        """Begins the graceful shutdown; `run` returns when it is done.

        Comes too late when the agent has handed everything over or its workspace away: who goes on has to be told, too.
        """
        self._end.choose(Stop())

    async def run(self) -> bool:
        """Serves until `stop`, then runs the stop scripts and reports the end.

        True when it ended because a workspace that was made ahead has been given to somebody: a new agent should be
        started for the new owner. When it ended for an upgrade, `handover` says how to go on. Raises CoderError when
        the server refuses us for good reason at the first dial and nothing was ever served.
        """
        import trio_asyncio

        async with trio_asyncio.open_loop() as loop, AsyncExitStack() as stack:
            loop.set_exception_handler(_note_stray_failure)
            self.scripts.prepare()
            ssh = SshAcceptor(self.state, max_timeout=self.config.ssh_max_timeout.total_seconds())
            async with trio.open_nursery() as nursery:
                pty = PtyService(self.state, nursery)
                network = AgentNetwork(self.config, self.state, ssh, pty, nursery)
                stack.push_async_callback(network.aclose)
                link = trio.CancelScope()
                nursery.start_soon(partial(self._stay_connected, network, link))
                nursery.start_soon(self._first_manifest, nursery)
                nursery.start_soon(self._look_after_listeners)
                processes = Processes(self.state)
                self.state.processes = processes
                tool_servers = ToolServers(self.state)
                self.state.tool_servers = tool_servers
                nursery.start_soon(tool_servers.run)
                if self.devcontainers is not None:
                    nursery.start_soon(self.devcontainers.run)
                kept = self._kept
                nursery.start_soon(processes.run, kept.processes if kept else ())
                if kept is not None:
                    self._take_over(kept, pty, nursery)
                sync = None
                if self.config.socket_enabled:
                    sync = SyncSocket(self.config.socket_path, kept.units if kept else None, self._report_app)
                    self.state.socket_path = sync.path
                    nursery.start_soon(sync.run)
                nursery.start_soon(self.recorder.run)
                nursery.start_soon(stay_small, self.state.activity)
                nursery.start_soon(self._wait_for_owner)
                how = await self._conclude(ssh, network)
                await network.leave()
                link.cancel()
                await self.recorder.stop("upgraded" if isinstance(how, ProgramUpgrade) else "stopped")
                if isinstance(how, ProgramUpgrade):
                    pty.let_go()
                    processes.let_go()
                    if sync is not None:
                        sync.let_go()
                nursery.cancel_scope.cancel()
            if isinstance(how, ProgramUpgrade):
                self.handover = self._left(how.program, pty, processes, sync)
        return isinstance(how, Given)

    async def _look_after_listeners(self) -> None:
        """The listeners outside of the overlay that were asked for. One that cannot be opened costs no workspace."""
        if self.config.debug_address is None and self.config.prometheus_address is None:
            return
        from coder.agent.network.http_api import DEBUG_ROUTES, METRICS_ROUTES, HttpApi

        wanted = {DEBUG_ROUTES: self.config.debug_address, METRICS_ROUTES: self.config.prometheus_address}
        async with trio.open_nursery() as nursery:
            for routes, address in wanted.items():
                if address is not None:
                    nursery.start_soon(self._listen_for, HttpApi(self.state, dict(routes)), address)

    async def _listen_for(self, api: HttpApi, address: tuple[str, int]) -> None:
        try:
            await trio.serve_tcp(guarded(api.serve), address[1], host=address[0])
        except OSError as error:
            log.warn("a listener was not opened", host=address[0], port=address[1], error=error)

    # ---- connection

    async def _stay_connected(self, network: AgentNetwork, scope: trio.CancelScope) -> None:
        """Dials for ever; each failure closes the whole connection and tries again."""
        backoff = Backoff(FIRST_DELAY, LAST_DELAY)
        lost_at = -RETURN_WINDOW
        with scope:
            while True:
                self._served = False
                began = trio.current_time()
                try:
                    await ServerConnection(self, network).run(self._on_connected)
                except* (NetError, HttpError, CoderError, trio.BrokenResourceError, OSError) as group:
                    _explain(group, self.config)
                    self.recorder.note("disconnected" if self._served else "dial_failed", how=_how(group))
                if self._served:
                    lost_at = trio.current_time()
                if trio.current_time() - began > LAST_DELAY:
                    backoff.reset()
                delay = backoff.next_delay()
                returning = trio.current_time() - lost_at < RETURN_WINDOW
                await trio.sleep(min(delay, RETURN_DELAY) if returning else delay)

    def _on_connected(self, manifest: agent_pb2.Manifest) -> None:
        """A manifest has arrived: the first starts scripts, later ones only refresh."""
        self._served = True
        before, self.state.manifest = self.state.manifest, manifest
        if before is not None and before.owner_username == NOBODY != manifest.owner_username:
            self._start_anew()  # it was given away while we were not connected
        rebuilt = before is not None and before.agent_id != manifest.agent_id
        self.recorder.note("connected", rebuilt=rebuilt)
        if rebuilt:
            log.info("the workspace was built anew; going on as its new agent")
            self.lifecycle.retell()
        env = dict(os.environ) | dict(manifest.environment_variables)
        self.state.directory = environment.expand_directory(manifest.directory, self.state.identity, env)
        if rebuilt and self.devcontainers is not None:
            self.devcontainers.begin_anew()
        self._manifest_seen.set()
        if self._upgrader is not None:
            self._upgrader.look()

    # ---- life

    async def _first_manifest(self, nursery: trio.Nursery) -> None:
        await self._manifest_seen.wait()
        manifest = self.state.manifest
        if manifest is None:
            return
        if self._kept is None:
            await self._start_workspace(manifest)
        else:
            await self._start_devcontainers(manifest)
        nursery.start_soon(self.scripts.run_cron, list(manifest.scripts))
        await self._look_for_upgrades(manifest)

    async def _start_workspace(self, manifest: agent_pb2.Manifest) -> None:
        self.lifecycle.set(State.STARTING)
        await write_secret_files(self.state, manifest)
        began = trio.current_time()
        outcome = await self.scripts.run_all([item for item in manifest.scripts if item.run_on_start], Stage.START)
        if not await self._start_devcontainers(manifest):
            outcome = replace(outcome, failed=True)
        succeeded = str(_started(outcome) == State.READY).lower()
        took = trio.current_time() - began
        self.state.counters.set("coderd_agentstats_startup_script_seconds", took, success=succeeded)
        with trio.move_on_after(LOGS_GRACE):
            await self.logs.wait_sent()  # who hears that it is ready finds the whole log
        self.lifecycle.set(_started(outcome))

    async def _start_devcontainers(self, manifest: agent_pb2.Manifest) -> bool:
        """False when one that the template declares does not run. Agents in dev containers look after none."""
        if self.devcontainers is None or manifest.HasField("parent_id"):
            return True
        return await self.devcontainers.start(self._kept.containers if self._kept is not None else None)

    # ---- another program

    async def _look_for_upgrades(self, manifest: agent_pb2.Manifest) -> None:
        """Until a newer program may take over; then the agent stops for it."""
        if not self.config.self_upgrade or self.config.state_dir is None:
            return
        from coder.agent.upgrade.upgrader import Upgrader

        folder = self.config.state_dir / f"{record_name(manifest)}.upgrade"
        waits = (self.state.activity, self._outbox)
        upgrader = Upgrader(self.config.policy, folder, waits, self.config.upgrade_keyring)
        self._upgrader = upgrader
        upgrader.look()
        with self._end.looking:
            async with trio.open_nursery() as nursery:
                if self._kept is not None and self._kept.refused:
                    upgrader.refuse(self._kept.digest, self._kept.target, self._kept.refused)
                elif self._kept is not None:
                    nursery.start_soon(upgrader.prove, self._kept.digest)
                self._end.choose(ProgramUpgrade(await upgrader.run()))
                nursery.cancel_scope.cancel()

    def _take_over(self, kept: Handover, pty: PtyService, nursery: trio.Nursery) -> None:
        followed = {one.pid for one in kept.terminals} | {one.pid for one in kept.processes if one.exited is None}
        nursery.start_soon(children.collect, [pid for pid in children.children() if pid not in followed])
        self.state.manifest = agent_pb2.Manifest.FromString(kept.manifest)
        self.lifecycle.resume(kept.states, kept.reported)
        pty.resume(kept.terminals)
        log.info(
            "went on from another program",
            before=kept.version,
            now=BUILD_VERSION,
            terminals=len(kept.terminals),
            processes=len(kept.processes),
        )

    async def _settle(self, network: AgentNetwork) -> None:
        """No new connections, and nothing unsaid."""
        await network.close_listeners()
        with trio.move_on_after(REPORT_GRACE):
            await self._outbox.wait_quiet()

    def _left(self, new: NewProgram, pty: PtyService, processes: Processes, sync: SyncSocket | None) -> Handover:
        """What the next program of this process goes on with; nobody reads from any of it any more."""
        manifest = self.state.manifest
        assert manifest is not None  # noqa: S101 - upgrades are looked for after the first one
        left = Handover(
            version=BUILD_VERSION,
            target=new.version,
            digest=new.digest,
            program=str(new.path),
            states=self.lifecycle.told(),
            reported=self.lifecycle.reported,
            manifest=manifest.SerializeToString(),
            terminals=pty.left(),
            processes=processes.left(),
            units=sync.left() if sync is not None else None,
            containers=self.devcontainers.left() if self.devcontainers is not None else [],
        )
        log.info(
            "handing over to another program",
            before=BUILD_VERSION,
            next=new.version,
            path=new.path,
            terminals=len(left.terminals),
            processes=len(left.processes),
        )
        return left

    # ---- secrets, token, owner, end

    async def renew_token(self) -> None:
        """Exchange what the machine can prove for a token, where we sign in like that. Raises what `exchange` does."""
        if self.config.exchange is not None:
            token = await self.config.exchange()
            self.config = replace(self.config, token=token, policy=self.config.policy.with_token(token))
            self.state.token = token.reveal()

    async def _wait_for_owner(self) -> None:
        await self._manifest_seen.wait()
        if await wait_until_given(self.config.policy):
            self._start_anew()

    def _start_anew(self) -> None:
        if self._end.choose(Given()):
            log.info("the workspace has a new owner; starting anew")

    async def _conclude(self, ssh: SshAcceptor, network: AgentNetwork) -> Ending:
        """Waits for the end and gets ready for it. What it returns is final."""
        how = await self._end.wait()
        self.scripts.end_cron()
        if isinstance(how, ProgramUpgrade):
            with self._end.preparing:
                await self._settle(network)
        how = self._end.seal()
        match how:
            case Stop():
                await self._shut_down(ssh, network)
            case Given():
                await self._hand_over(ssh, network)
        return how

    async def _hand_over(self, ssh: SshAcceptor, network: AgentNetwork) -> None:
        """The end of an agent whose workspace goes on: nothing of its first owner stays, and no stop script runs."""
        ssh.terminate_all()
        await network.close_listeners()

    async def _shut_down(self, ssh: SshAcceptor, network: AgentNetwork) -> None:
        self.lifecycle.set(State.SHUTTING_DOWN)
        ssh.terminate_all()
        await network.close_listeners()
        manifest = self.state.manifest
        outcome = ScriptOutcome()
        if manifest is not None:
            outcome = await self.scripts.run_all([item for item in manifest.scripts if item.run_on_stop], Stage.STOP)
        self.lifecycle.set(_stopped(outcome))
        with trio.move_on_after(REPORT_GRACE):
            await self._outbox.wait_quiet()

    async def _report_app(self, request: Mapping[str, Any]) -> None:
        await report_app_status(self.config.policy, request)

    async def _report_timing(self, timing: agent_pb2.Timing) -> None:
        if not self.timings.add(agent_pb2.WorkspaceAgentScriptCompletedRequest(timing=timing)):
            log.warn("too many unreported script results; one was dropped")


def _started(outcome: ScriptOutcome) -> agent_pb2.Lifecycle.State.ValueType:
    if outcome.timed_out:
        return State.START_TIMEOUT
    return State.START_ERROR if outcome.failed else State.READY


def _stopped(outcome: ScriptOutcome) -> agent_pb2.Lifecycle.State.ValueType:
    if outcome.timed_out:
        return State.SHUTDOWN_TIMEOUT
    return State.SHUTDOWN_ERROR if outcome.failed else State.OFF


def _explain(group: BaseExceptionGroup[BaseException], config: AgentConfig) -> None:
    """One clear line a failed dial: what happened and what the reader can do."""
    from coder.base.errors import explain_error

    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    url = config.policy.url
    if isinstance(error, HttpError) and error.status in {401, 404} and config.exchange is not None:
        log.error(
            "the server does not take this machine for one of its agents; a template names it by its instance id",
            url=url,
            error=error.message,
            detail=error.detail,
        )
        return
    if isinstance(error, HttpError) and error.status == 401:
        log.error(
            "the server does not accept this agent's token; a newer build of the workspace has a new one",
            url=url,
            detail=error.message,
        )
        return
    log.warn("connection to the server ended; dialling again", url=url, error=explain_error(error).split("\n")[0])


def _how(group: BaseExceptionGroup[BaseException]) -> str:
    """In a word, how a connection ended or why there was none: for the flight recorder."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, HttpError):
        return f"http {error.status}"
    if isinstance(error, RpcClosed) and "no answer" in error.message:
        return "silent"
    if isinstance(error, RpcClosed | trio.BrokenResourceError):
        return "closed"
    return error.code if isinstance(error, CoderError) else type(error).__name__


def _note_stray_failure(_loop: object, context: dict[str, object]) -> None:
    """What an SSH session left behind unawaited. trio-asyncio would end the agent for it, and every other session."""
    log.debug("a task of SSH ended unheard", said=context.get("message"), error=context.get("exception") or "")
