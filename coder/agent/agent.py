"""The agent's life: dial, take the manifest, join the overlay, run scripts, serve until told to stop.

The connection to the server is torn down and redialled as a whole when any of its parts fails
(docs/protocol/agents.md#calls). What lives longer - the overlay node, SSH sessions, queues of logs and states - is
opened once here and survives every reconnect.
"""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import trio

from coder.agent.config import AgentConfig
from coder.agent.connection import ServerConnection
from coder.agent.lifecycle import Lifecycle, State
from coder.agent.network.http_api import DEBUG_ROUTES, METRICS_ROUTES, HttpApi
from coder.agent.network.overlay import AgentNetwork
from coder.agent.prebuild_claim import NOBODY, wait_until_given
from coder.agent.reports.app_health import AppHealth
from coder.agent.reports.connection_reports import ReportQueue
from coder.agent.reports.flight_recorder import FlightRecorder
from coder.agent.reports.metadata import MetadataCollector
from coder.agent.ssh.acceptor import SshAcceptor
from coder.agent.state import AgentState
from coder.agent.workspace import environment
from coder.agent.workspace.logs import LogQueue
from coder.agent.workspace.processes import Processes
from coder.agent.workspace.scripts import ScriptOutcome, ScriptRunner, Stage
from coder.agent.workspace.sync_socket import SyncSocket
from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.base.retry import Backoff
from coder.net.errors import HttpError, NetError
from coder.rpc.errors import RpcClosed
from coder.rpc.proto import agent_pb2

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


class AgentRole:
    """One agent process."""

    def __init__(self, config: AgentConfig) -> None:
        self.config = config
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
        self.state.report = self.reports.add
        self.timings: tuple[trio.MemorySendChannel[agent_pb2.Timing], trio.MemoryReceiveChannel[agent_pb2.Timing]] = (
            trio.open_memory_channel[agent_pb2.Timing](256)
        )
        self.scripts = ScriptRunner(self.state, self.logs, self._report_timing, config.log_dir, config.script_data_dir)
        self.metadata = MetadataCollector(self.state)
        self.app_health = AppHealth(self.state)
        self.recorder = FlightRecorder(config.state_dir)
        self._manifest_seen = trio.Event()
        self._served = False
        "Whether the current connection brought a manifest."
        self._stop = trio.Event()
        self._given = False
        "Whether the workspace has got another owner."
        self._connected = False

    def stop(self) -> None:
        """Begins the graceful shutdown; `run` returns when it is done."""
        self._stop.set()

    async def run(self) -> bool:
        """Serves until `stop`, then runs the stop scripts and reports the end.

        True when it ended because a workspace that was made ahead has been given to somebody: a new agent should be
        started for the new owner. Raises CoderError when the server refuses us for good reason at the first dial and
        nothing was ever served.
        """
        import trio_asyncio

        async with trio_asyncio.open_loop() as loop, AsyncExitStack() as stack:
            loop.set_exception_handler(_note_stray_failure)
            self.scripts.prepare()
            ssh = SshAcceptor(self.state, max_timeout=self.config.ssh_max_timeout.total_seconds())
            async with trio.open_nursery() as nursery:
                network = AgentNetwork(self.config, self.state, ssh, nursery)
                stack.push_async_callback(network.aclose)
                link = trio.CancelScope()
                nursery.start_soon(partial(self._stay_connected, network, link))
                nursery.start_soon(self._first_manifest, nursery)
                nursery.start_soon(self._look_after_listeners)
                processes = Processes(self.state)
                self.state.processes = processes
                nursery.start_soon(processes.run)
                if self.config.socket_enabled:
                    sync = SyncSocket(self.config.socket_path)
                    self.state.socket_path = sync.path
                    nursery.start_soon(sync.run)
                nursery.start_soon(self.recorder.run)
                nursery.start_soon(self._wait_for_owner)
                await self._stop.wait()
                if self._given:
                    await self._hand_over(ssh, network, link)
                else:
                    await self._shut_down(ssh, network, link)
                await self.recorder.stop()
                nursery.cancel_scope.cancel()
        return self._given

    async def _look_after_listeners(self) -> None:
        """The listeners outside of the overlay that were asked for. One that cannot be opened costs no workspace."""
        wanted = {DEBUG_ROUTES: self.config.debug_address, METRICS_ROUTES: self.config.prometheus_address}
        async with trio.open_nursery() as nursery:
            for routes, address in wanted.items():
                if address is not None:
                    nursery.start_soon(self._listen_for, HttpApi(self.state, dict(routes)), address)

    async def _listen_for(self, api: HttpApi, address: tuple[str, int]) -> None:
        try:
            await trio.serve_tcp(api.serve, address[1], host=address[0])
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
        self._manifest_seen.set()

    # ---- life

    async def _first_manifest(self, nursery: trio.Nursery) -> None:
        await self._manifest_seen.wait()
        manifest = self.state.manifest
        if manifest is None:
            return
        self.lifecycle.set(State.STARTING)
        self._write_secret_files(manifest)
        outcome = await self.scripts.run_all([item for item in manifest.scripts if item.run_on_start], Stage.START)
        with trio.move_on_after(LOGS_GRACE):
            await self.logs.wait_sent()  # who hears that it is ready finds the whole log
        self.lifecycle.set(_started(outcome))
        nursery.start_soon(self.scripts.run_cron, list(manifest.scripts))

    def _write_secret_files(self, manifest: agent_pb2.Manifest) -> None:
        for secret in manifest.secrets:
            if not secret.file_path:
                continue
            path = environment.expand_directory(secret.file_path, self.state.identity, {})
            try:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                with os.fdopen(descriptor, "wb") as out:
                    out.write(secret.value)
            except OSError as error:
                log.error("cannot write a secret's file", path=path, error=error)

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
        if not self._stop.is_set():
            log.info("the workspace has a new owner; starting anew")
            self._given = True
            self._stop.set()

    async def _hand_over(self, ssh: SshAcceptor, network: AgentNetwork, link: trio.CancelScope) -> None:
        """The end of an agent whose workspace goes on: nothing of its first owner stays, and no stop script runs."""
        ssh.terminate_all()
        await network.close_listeners()
        await network.leave()
        link.cancel()

    async def _shut_down(self, ssh: SshAcceptor, network: AgentNetwork, link: trio.CancelScope) -> None:
        self.lifecycle.set(State.SHUTTING_DOWN)
        ssh.terminate_all()
        await network.close_listeners()
        manifest = self.state.manifest
        outcome = ScriptOutcome()
        if manifest is not None:
            outcome = await self.scripts.run_all([item for item in manifest.scripts if item.run_on_stop], Stage.STOP)
        self.lifecycle.set(_stopped(outcome))
        with trio.move_on_after(REPORT_GRACE):
            await self.logs.wait_sent()
            await self.lifecycle.wait_all_reported()
            await self.reports.wait_sent()
        await network.leave()
        link.cancel()

    async def _report_timing(self, timing: agent_pb2.Timing) -> None:
        try:
            self.timings[0].send_nowait(timing)
        except trio.WouldBlock:
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
            url=url, error=error.message, detail=error.detail,
        )  # fmt: skip
        return
    if isinstance(error, HttpError) and error.status == 401:
        log.error(
            "the server does not accept this agent's token; a newer build of the workspace has a new one",
            url=url, detail=error.message,
        )  # fmt: skip
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
