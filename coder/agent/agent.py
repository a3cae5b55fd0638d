"""Life of the agent: dial, receive the manifest, join the overlay, run scripts, serve until stopped.

The connection to the server is closed and redialled as a whole when any of its parts fails
(docs/protocol/agents.md#calls). Longer-lived parts (the overlay node, SSH sessions, queues of logs and states) are
opened once here and survive every reconnect.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import trio

from coder.agent.activity import Idle
from coder.agent.config import AgentConfig
from coder.agent.connection import ServerConnection, record_name
from coder.agent.devcontainers.table import Devcontainers
from coder.agent.failure_isolation import isolate_failures
from coder.agent.lifecycle import Lifecycle, State
from coder.agent.memory import trim_memory
from coder.agent.network.overlay import AgentNetwork
from coder.agent.network.reconnecting_pty import PtyService
from coder.agent.platform import system
from coder.agent.prebuild_claim import PREBUILDS_OWNER, wait_until_claimed
from coder.agent.reconnect_delays import ReconnectDelays
from coder.agent.reports.app_health import AppHealth
from coder.agent.reports.app_status import report_app_status
from coder.agent.reports.connection_reports import ReportQueue
from coder.agent.reports.flight_recorder import FlightRecorder
from coder.agent.reports.metadata import MetadataCollector
from coder.agent.reports.ordered_reports import OrderedReports
from coder.agent.reports.outbox import Outbox
from coder.agent.shutdown_decision import Claimed, ProgramUpgrade, ShutdownDecision, ShutdownReason, Stop
from coder.agent.ssh.acceptor import SshAcceptor
from coder.agent.state import AgentState
from coder.agent.upgrade.handover import Handover
from coder.agent.upgrade.supervisor import report_takeover
from coder.agent.workspace import children, environment
from coder.agent.workspace.logs import LogQueue
from coder.agent.workspace.mcp_servers import ToolServers
from coder.agent.workspace.processes import Processes
from coder.agent.workspace.scripts import ScriptOutcome, ScriptRunner, Stage
from coder.agent.workspace.secret_files import write_secret_files
from coder.agent.workspace.sync_socket import SyncSocket
from coder.base.errors import CoderError
from coder.base.json_types import Json
from coder.base.log import get_logger
from coder.base.version import BUILD_VERSION
from coder.net.errors import HttpError, NetError, requested_delay
from coder.rpc.errors import RpcClosed
from coder.rpc.proto import agent_pb2

if TYPE_CHECKING:
    from coder.agent.network.http_api import HttpApi
    from coder.agent.upgrade.upgrader import Blocker, NewProgram, Upgrader

log = get_logger("agent")

LOGS_GRACE = 1.0
"Seconds a ready workspace delays its ready state until the server has its scripts' last log lines (ours)."


MAX_REASON = 300
"Characters (ours) of a log line about an unexpected answer."
MAX_TIMINGS = 256
"Results of scripts kept while there is no connection (ours)."


class AgentRole:
    """Main object of one agent process."""

    def __init__(self, config: AgentConfig, kept: Handover | None = None) -> None:
        """`kept` is the state that the previous program of this process handed over."""
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
        self.timings = OrderedReports[agent_pb2.WorkspaceAgentScriptCompletedRequest](MAX_TIMINGS)
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
        self._shutdown = ShutdownDecision()
        self._upgrader: Upgrader | None = None
        self._not_kept: tuple[Idle, ...] = ()
        "What a newer program of this system cannot continue, beyond connections and scripts."
        self.handover: Handover | None = None
        "State that an upgrade hands to the next program; set once `run` has returned."

    def stop(self) -> None:
        """Begin the graceful shutdown; `run` returns when the shutdown is done.

        Has no effect once the agent has handed over to another program or released a claimed workspace: stop the
        successor as well.
        """
        self._shutdown.choose(Stop())

    async def run(self) -> bool:
        """Serve until `stop`, then run the stop scripts and report the end.

        Returns True when a user claimed this prebuilt workspace: the caller should start a new agent for the new owner.
        After an upgrade, `handover` holds the state for the next program. Raises CoderError when the server rejects the
        agent for good at the first dial and nothing was ever served.
        """
        ssh = SshAcceptor(self.state, max_timeout=self.config.ssh_max_timeout.total_seconds())
        async with ssh.open(), AsyncExitStack() as stack:
            self.scripts.prepare()
            async with trio.open_nursery() as nursery:
                pty = PtyService(self.state, nursery)
                network = AgentNetwork(self.config, self.state, ssh, pty, nursery)
                stack.push_async_callback(network.aclose)
                link = trio.CancelScope()
                nursery.start_soon(partial(self._stay_connected, network, link))
                nursery.start_soon(self._first_manifest, nursery)
                nursery.start_soon(self._serve_listeners)
                processes = Processes(self.state)
                self.state.processes = processes
                if not system.HAS_EXECVE:
                    self._not_kept = (Idle("terminals", pty.count), Idle("commands", processes.count))
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
                if self.config.socket_enabled and system.HAS_SOCKET_FILES:
                    sync = SyncSocket(self.config.socket_path, kept.units if kept else None, self._report_app)
                    self.state.socket_path = sync.path
                    nursery.start_soon(sync.run)
                nursery.start_soon(self.recorder.run)
                nursery.start_soon(self.scripts.keep_directories)
                nursery.start_soon(trim_memory, self.state.activity)
                nursery.start_soon(self._wait_for_owner)
                reason = await self._await_shutdown(ssh, network)
                await network.leave()
                link.cancel()
                await self.recorder.stop("upgraded" if isinstance(reason, ProgramUpgrade) else "stopped")
                if isinstance(reason, ProgramUpgrade) and system.HAS_EXECVE:
                    pty.release()
                    processes.release()
                    if sync is not None:
                        sync.release()
                nursery.cancel_scope.cancel()
            if isinstance(reason, ProgramUpgrade):
                self.handover = self._handover_state(reason.program, pty, processes, sync)
        return isinstance(reason, Claimed)

    async def _serve_listeners(self) -> None:
        """Serve the configured listeners outside the overlay. A listener that cannot be opened does not stop the
        agent."""
        if self.config.debug_address is None and self.config.prometheus_address is None:
            return
        from coder.agent.network.http_api import DEBUG_ROUTES, METRICS_ROUTES, HttpApi

        addresses = {DEBUG_ROUTES: self.config.debug_address, METRICS_ROUTES: self.config.prometheus_address}
        async with trio.open_nursery() as nursery:
            for routes, address in addresses.items():
                if address is not None:
                    nursery.start_soon(self._listen_for, HttpApi(self.state, dict(routes)), address)

    async def _listen_for(self, api: HttpApi, address: tuple[str, int]) -> None:
        try:
            await trio.serve_tcp(isolate_failures(api.serve), address[1], host=address[0])
        except OSError as error:
            log.warn("a listener was not opened", host=address[0], port=address[1], error=error)

    # ---- connection

    async def _stay_connected(self, network: AgentNetwork, scope: trio.CancelScope) -> None:
        """Dial forever; each failure closes the whole connection and redials."""
        delays = ReconnectDelays()
        with scope:
            while True:
                self._served = False
                began, requested = trio.current_time(), 0.0
                connection = ServerConnection(self, network)
                try:
                    await connection.run(self._on_connected)
                except* (NetError, HttpError, CoderError, trio.BrokenResourceError, OSError) as group:
                    requested = requested_delay(group)
                    _explain(group, self.config)
                    how = "silent" if connection.got_no_answer else _failure_word(group)
                    self.recorder.note("disconnected" if self._served else "dial_failed", how=how)
                except* Exception as group:
                    # A defect that an answer of the server uncovers must not end the users' sessions.
                    log.error("an answer of the server was not expected; redialling", error=_first_line(group))
                    self.recorder.note("disconnected" if self._served else "dial_failed", how=_failure_word(group))
                ended, was_served, self._served = trio.current_time(), self._served, False
                await trio.sleep(delays.after(began, ended, was_served=was_served, requested=requested))

    def _on_connected(self, manifest: agent_pb2.Manifest) -> None:
        """Handle a received manifest: the first starts scripts, later ones only refresh."""
        self._served = True
        before, self.state.manifest = self.state.manifest, manifest
        if before is not None and before.owner_username == PREBUILDS_OWNER != manifest.owner_username:
            self._restart_for_owner()  # the workspace was claimed while the agent was disconnected
        rebuilt = before is not None and before.agent_id != manifest.agent_id
        self.recorder.note("connected", rebuilt=rebuilt)
        if rebuilt:
            log.info("the workspace was rebuilt; continuing as its new agent")
            self.lifecycle.resend_all()
        env = dict(os.environ) | dict(manifest.environment_variables)
        self.state.directory = environment.expand_directory(manifest.directory, self.state.identity, env)
        if rebuilt and self.devcontainers is not None:
            self.devcontainers.reset_sub_agents()
        self._manifest_seen.set()
        if self._upgrader is not None:
            self._upgrader.check_now()

    # ---- lifecycle

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
        await self._watch_for_upgrade(manifest)

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
            await self.logs.wait_sent()  # a client that sees the ready state finds the whole log
        self.lifecycle.set(_started(outcome))

    async def _start_devcontainers(self, manifest: agent_pb2.Manifest) -> bool:
        """Return False when a dev container that the template declares does not run. Agents inside dev containers
        manage none."""
        if self.devcontainers is None or manifest.HasField("parent_id"):
            return True
        return await self.devcontainers.start(self._kept.containers if self._kept is not None else None)

    # ---- upgrades

    async def _watch_for_upgrade(self, manifest: agent_pb2.Manifest) -> None:
        """Wait until a newer program may take over; then the agent stops for it."""
        if not self.config.self_upgrade or self.config.state_dir is None:
            return
        from coder.agent.upgrade.upgrader import Upgrader

        folder = self.config.state_dir / f"{record_name(manifest)}.upgrade"
        blockers: list[Blocker] = [self.state.activity, self._outbox, *self._not_kept]
        upgrader = Upgrader(self.config.policy, folder, blockers, self.config.upgrade_keyring)
        self._upgrader = self.state.upgrades = upgrader
        upgrader.check_now()
        with self._shutdown.upgrade_search:
            async with trio.open_nursery() as nursery:
                if self._kept is not None:
                    report_takeover()  # also after a failed upgrade: it connected, so its end is the agent's end
                    if self._kept.refused:
                        upgrader.refuse(self._kept.digest, self._kept.target, self._kept.refused)
                    else:
                        nursery.start_soon(upgrader.confirm_takeover, self._kept.digest)
                self._shutdown.choose(ProgramUpgrade(await upgrader.run()))
                nursery.cancel_scope.cancel()

    def _take_over(self, kept: Handover, pty: PtyService, nursery: trio.Nursery) -> None:
        followed = {item.pid for item in kept.terminals} | {item.pid for item in kept.processes if item.exited is None}
        nursery.start_soon(children.reap, [pid for pid in children.children() if pid not in followed])
        self.state.manifest = agent_pb2.Manifest.FromString(kept.manifest)
        self.lifecycle.resume(kept.states, kept.reported)
        pty.resume(kept.terminals)
        log.info(
            "took over from another program",
            before=kept.version,
            now=BUILD_VERSION,
            terminals=len(kept.terminals),
            processes=len(kept.processes),
        )

    async def _drain(self, network: AgentNetwork) -> None:
        """Stop accepting connections and deliver everything that is still queued."""
        await network.close_listeners()
        await self._outbox.deliver(lambda: self._served)

    def _handover_state(
        self, new: NewProgram, pty: PtyService, processes: Processes, sync: SyncSocket | None
    ) -> Handover:
        """Return the state that the next program of this process continues with; nothing reads from it any more."""
        manifest = self.state.manifest
        assert manifest is not None  # noqa: S101 - the search for upgrades starts after the first manifest
        state = Handover(
            version=BUILD_VERSION,
            target=new.version,
            digest=new.digest,
            program=str(new.path),
            states=self.lifecycle.history(),
            reported=self.lifecycle.reported,
            manifest=manifest.SerializeToString(),
            terminals=pty.handover_state(),
            processes=processes.handover_state(),
            units=sync.handover_state() if sync is not None else None,
            containers=self.devcontainers.handover_state() if self.devcontainers is not None else [],
        )
        log.info(
            "handing over to another program",
            before=BUILD_VERSION,
            next=new.version,
            path=new.path,
            terminals=len(state.terminals),
            processes=len(state.processes),
        )
        return state

    # ---- secrets, token, owner, end

    async def exchange_token(self) -> None:
        """Exchange the machine's proof of identity for a token, where the agent authenticates that way. Raises what
        `exchange` raises."""
        if self.config.exchange is not None:
            token = await self.config.exchange()
            self.config = replace(self.config, token=token, policy=self.config.policy.with_token(token))
            self.state.token = token.reveal()

    async def _wait_for_owner(self) -> None:
        await self._manifest_seen.wait()
        if await wait_until_claimed(self.config.policy):
            self._restart_for_owner()

    def _restart_for_owner(self) -> None:
        if self._shutdown.choose(Claimed()):
            log.info("the workspace has a new owner; restarting")

    async def _await_shutdown(self, ssh: SshAcceptor, network: AgentNetwork) -> ShutdownReason:
        """Wait for the end and prepare for it. The returned reason is final."""
        reason = await self._shutdown.wait()
        self.scripts.end_cron()
        if isinstance(reason, ProgramUpgrade):
            with self._shutdown.upgrade_preparation:
                await self._drain(network)
        reason = self._shutdown.finalize()
        match reason:
            case Stop():
                await self._shut_down(ssh, network)
            case Claimed():
                await self._hand_over(ssh, network)
        return reason

    async def _hand_over(self, ssh: SshAcceptor, network: AgentNetwork) -> None:
        """End an agent whose workspace continues: nothing of its first owner stays, and no stop script runs."""
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
        await self._outbox.deliver(lambda: self._served)

    async def _report_app(self, request: Mapping[str, Json]) -> None:
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
    """Log one line for a failed dial: the cause and the reader's options."""
    from coder.base.errors import explain_error

    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    url = config.policy.url
    is_refused = isinstance(error, HttpError) and error.is_enveloped  # by the server itself, not by a proxy's page
    if isinstance(error, HttpError) and is_refused and error.status in {401, 404} and config.exchange is not None:
        log.error(
            "the server does not know this machine as an agent; a template must set its instance id",
            url=url,
            error=error.message,
            detail=error.detail,
        )
        return
    if isinstance(error, HttpError) and is_refused and error.status == 401:
        log.error(
            "the server does not accept this agent's token; a newer build of the workspace has a new one "
            "(`coder external-workspaces agent-instructions` prints it)",
            url=url,
            detail=error.message,
        )
        return
    line = " ".join(explain_error(error, with_hint=False).split())  # a proxy's page has lines
    log.warn("the connection to the server closed; redialling", url=url, error=line)


def _first_line(group: BaseExceptionGroup[BaseException]) -> str:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return " ".join(f"{type(error).__name__}: {error}".split())[:MAX_REASON]


def _failure_word(group: BaseExceptionGroup[BaseException]) -> str:
    """Return a word for how a connection ended or why dialling failed, for the flight recorder."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, HttpError):
        return f"http {error.status}"
    if isinstance(error, RpcClosed | trio.BrokenResourceError):
        return "closed"
    return error.code if isinstance(error, CoderError) else type(error).__name__
