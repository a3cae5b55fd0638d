"""One scrape for all processes of a server: the process that answers it asks its siblings, and adds up.

What the database says is the same in every process and taken once; so is what the kernel says of the machine. Counters
and histograms are sums, and so are gauges of what a process holds (connections, memory, descriptors): memory that
processes share counts for each.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import trio

from coder.appproxy.metrics.metric_families import Family, FamilyState
from coder.base.log import get_logger
from coder.coderd.services.foundation.sibling_messages import (
    SiblingAwayError,
    SiblingMessage,
    receive_all,
    send_message,
)
from coder.coderd.services.foundation.this_process import Sibling, ThisProcess
from coder.coderd.services.network.coordinator import RegionLatency

TIMEOUT = 5.0
"""Seconds for a sibling's answer; the scrape goes on without it."""
TAKEN_ONCE = frozenset(
    {
        "coder_clock_skew_seconds",
        "coder_derp_server_clients",
        "coder_server_process_restarts_total",
        "coder_server_processes",
        "coder_tls_certificate_not_after_seconds",
        "coderd_agents_apps",
        "coderd_agents_connection_latencies_seconds",
        "coderd_agents_connections",
        "coderd_agents_up",
        "coderd_api_active_users_duration_hour",
        "coderd_api_total_user_count",
        "coderd_api_workspace_latest_build",
        "coderd_build_info",
        "coderd_license_active_users",
        "coderd_license_errors",
        "coderd_license_user_limit_enabled",
        "coderd_license_warnings",
        "coderd_provisionerd_jobs_current",
        "coderd_provisionerd_num_daemons",
        "coderd_workspace_latest_build_status",
        "process_network_receive_bytes_total",
        "process_network_transmit_bytes_total",
        "process_virtual_memory_max_bytes",
    }
)
"""Families whose value is the same for the whole server; `coderd_agentstats_…` as well."""
_LEAST = frozenset({"coder_pubsub_connected", "process_start_time_seconds"})
"""Families of which the smallest value is the server's."""
_MOST = frozenset({"coder_database_away_seconds", "coder_database_shortage"})
"""Families of which the largest value is the server's."""
_REMOTE, _LOCAL, _ALL = (f"coder_derp_server_clients{kind}" for kind in ("_remote", "_local", ""))
_log = get_logger("metrics")
_AWAY = (SiblingAwayError, trio.TooSlowError, trio.BrokenResourceError, OSError)


class AgentNode(msgspec.Struct):
    """What a process knows of an agent that is connected to it."""

    number: int
    latencies: dict[str, RegionLatency]


class ProcessMetrics(msgspec.Struct):
    """Counts of one process."""

    families: list[FamilyState]
    agents: dict[str, AgentNode]


async def ask_siblings(process: ThisProcess) -> list[ProcessMetrics]:
    """Return the counts of all siblings that answer in time."""
    results: list[ProcessMetrics] = []

    async def ask(sibling: Sibling) -> None:
        try:
            with trio.fail_after(TIMEOUT):
                async with await send_message(sibling.socket_path, SiblingMessage("metrics")) as stream:
                    results.append(msgspec.json.decode(await receive_all(stream), type=ProcessMetrics))
        except (*_AWAY, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            _log.warn("a process is missing in a scrape", process=sibling.name, error=error)

    async with trio.open_nursery() as nursery:
        for sibling in process.siblings.values():
            nursery.start_soon(ask, sibling)
    return results


def merged(own: Sequence[Family], elsewhere: Sequence[ProcessMetrics]) -> list[Family]:
    """Return the families of the whole server."""
    if not elsewhere:
        return list(own)
    states: dict[str, list[FamilyState]] = {family.name: [family.state()] for family in own}
    for process in elsewhere:
        for state in process.families:
            states.setdefault(state.name, []).append(state)
    results = {name: _merge(name, of_name) for name, of_name in states.items()}
    if _REMOTE in results:
        # A client that is at a sibling is remote for this process, and not for the server.
        results[_REMOTE].set(max(results[_ALL].value - results[_LOCAL].value, 0))
    return list(results.values())


def _merge(name: str, states: list[FamilyState]) -> Family:
    if name in TAKEN_ONCE or name.startswith("coderd_agentstats_"):
        return Family.sum_of(states[:1])
    if name in _LEAST or name in _MOST:
        chosen = (min if name in _LEAST else max)(states, key=_first_value)
        return Family.sum_of([chosen])
    return Family.sum_of(states)


def _first_value(state: FamilyState) -> float:
    return state.values[0][1] if state.values else 0
