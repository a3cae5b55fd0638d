"""`coder exp scaletest agents`: thousands of agents in one process, with the connections and reports of real ones."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote
from uuid import UUID

import trio

from coder.api.site.deployment import ExternalAgentCredentials
from coder.api.workspaces.workspaces import Workspace
from coder.base import garbage
from coder.base.errors import CoderError
from coder.base.open_files import open_files_limit, raise_open_files
from coder.base.secret import Secret
from coder.base.threads import run_trio
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.written_text import read_written
from coder.cli.declarations.scaletest.agents import AGENTS, ScaletestAgentsOptions
from coder.cli.scaletest.ledger import Ledger
from coder.cli.scaletest.runs import percentiles, with_client
from coder.cli.scaletest.simulated_agent import FleetFigures, SimulatedAgent
from coder.cli.ui.output import print_json, say
from coder.client.answers import read
from coder.net.policy import DialPolicy

if TYPE_CHECKING:
    from coder.net.http1 import HttpClient

MAX_AGENTS = 20_000
"""Limit (our choice) of a process: about 60 KiB of memory and two sockets for each agent."""
MAX_RAMP = 1000
_OWN_FILES = 64
"""Files that the process itself opens, and may need to resolve names."""
_SHOWN_ERRORS = 10


@implements(AGENTS)
def _run(invocation: Invocation[ScaletestAgentsOptions]) -> int:
    if not 0 < invocation.options.ramp <= MAX_RAMP:
        raise CoderError("bad_option", f"--ramp must be from 1 to {MAX_RAMP} agents a second")
    if invocation.options.progress.total_seconds() < 0.1:
        raise CoderError("bad_option", "--progress must be at least 100ms")
    if not 0 <= invocation.options.live_logs <= 100:
        raise CoderError("bad_option", "--live-logs is a percentage from 0 to 100")
    if invocation.options.token_file:
        tokens = _read_tokens(invocation.options.token_file)
        policy = session.dial_policy(invocation, token="")
        return run_trio(_simulate, invocation, policy, tokens)
    return run_trio(with_client, invocation, partial(_with_own_workspaces, invocation))


def _read_tokens(name: str) -> list[str]:
    """Return the tokens of a file, one in each line. Raises CoderError."""
    try:
        text = sys.stdin.read() if name == "-" else read_written(Path(name))
    except (OSError, UnicodeError) as error:
        raise CoderError("scaletest", f"{name} cannot be read: {error}") from error
    tokens = [line.strip() for line in text.splitlines() if line.strip()]
    for number, token in enumerate(tokens, 1):
        try:
            UUID(token)
        except ValueError as error:
            raise CoderError("scaletest", f"line {number} of {name} is no agent token, which is a UUID") from error
    return tokens


async def _with_own_workspaces(invocation: Invocation[ScaletestAgentsOptions], http: HttpClient) -> int:
    tokens = await _external_tokens(invocation, http)
    return await _simulate(invocation, http.policy, tokens)


async def _external_tokens(invocation: Invocation[ScaletestAgentsOptions], http: HttpClient) -> list[str]:
    """Return the tokens of external agents in the workspaces of `create-workspaces`."""
    tokens = []
    for entry in Ledger(session.config_dir(invocation), http.policy.url).of("workspace"):
        path = f"/api/v2/users/{quote(entry.owner, safe='')}/workspace/{quote(entry.name, safe='')}"
        workspace = read(await http.request("GET", path), Workspace)
        if not workspace.latest_build.has_external_agent:
            continue
        for resource in workspace.latest_build.resources:
            for agent in resource.agents or ():
                path = f"/api/v2/workspaces/{workspace.id}/external-agent/{quote(agent.name, safe='')}/credentials"
                tokens.append(read(await http.request("GET", path), ExternalAgentCredentials).agent_token)
    return tokens


async def _simulate(invocation: Invocation[ScaletestAgentsOptions], policy: DialPolicy, tokens: list[str]) -> int:
    if not tokens:
        raise CoderError(
            "scaletest",
            "there are no agents to simulate",
            "Create workspaces of a template with external agents: coder exp scaletest create-workspaces "
            "--no-cleanup. Or give --token-file.",
        )
    count = min(invocation.options.count or len(tokens), len(tokens), MAX_AGENTS)
    check_files(count, uses_relay=not invocation.options.no_relay)
    figures = FleetFigures()
    say(f"{count} agents, {invocation.options.ramp} new ones a second …")
    with garbage.keeping_many():
        await _run_agents(invocation, policy, tokens[:count], figures)
    return _write_figures(invocation, figures, count)


def check_files(count: int, *, uses_relay: bool = True) -> None:
    """Raise the limit of open files as far as the system allows; raise CoderError if not all agents can connect.

    Otherwise the last ones would fail for as long as the others stay, which looks like a defect of the server.
    """
    raise_open_files()
    room = max(open_files_limit() - _OWN_FILES, 0) // (2 if uses_relay else 1)
    if count > room:
        raise CoderError(
            "scaletest",
            f"this process may open {open_files_limit()} files, enough for {room} agents and not for {count}",
            f"Raise the limit with ulimit -Hn, pass --count {room}, or start several processes.",
        )


async def _run_agents(
    invocation: Invocation[ScaletestAgentsOptions], policy: DialPolicy, tokens: Sequence[str], figures: FleetFigures
) -> None:
    count = len(tokens)
    live = round(count * invocation.options.live_logs / 100)
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_show_progress, figures, count, invocation.options.progress.total_seconds())
        for number, token in enumerate(tokens):
            await trio.sleep_until(began + number / invocation.options.ramp)
            agent = SimulatedAgent(
                policy.with_token(Secret(token)),
                figures,
                uses_relay=not invocation.options.no_relay,
                logs=number < live,
            )
            nursery.start_soon(agent.run)
        seconds = invocation.options.duration.total_seconds()
        await trio.sleep(seconds if seconds else float("inf"))
        nursery.cancel_scope.cancel()


async def _show_progress(figures: FleetFigures, count: int, interval: float) -> None:
    while True:
        await trio.sleep(interval)
        say(f"connected {figures.connected} of {count}, lost {figures.lost}, failed calls {figures.failed_calls}")


def _write_figures(invocation: Invocation[ScaletestAgentsOptions], figures: FleetFigures, count: int) -> int:
    """Write the result. Return 1 unless every agent was connected at the end and no call failed."""
    common = sorted(figures.errors.items(), key=lambda item: -item[1])[:_SHOWN_ERRORS]
    document = {
        "agents": count,
        "connected": figures.connected,
        "peak": figures.peak,
        "attempts": figures.attempts,
        "lost": figures.lost,
        "calls": figures.calls,
        "failed_calls": figures.failed_calls,
        "connect": percentiles(figures.connect_seconds),
        "errors": dict(common),
    }
    if invocation.options.output == "json":
        print_json(document)
    else:
        print(f"agents: {figures.connected} of {count} connected, {figures.lost} lost, {figures.attempts} attempts")
        print(f"calls: {figures.calls}, {figures.failed_calls} failed")
        for name, value in percentiles(figures.connect_seconds).items():
            print(f"  connect {name.removesuffix('_ms')}: {value:g} ms")
        for text, times in common:
            print(f"  {times} times: {text}")
    return 0 if figures.connected == count and not figures.failed_calls else 1
