"""Readings of this machine for the server, together with the flight recorder's events.

The call `ReportVitals` on the agent's session is our own. A server that does not know it gets the document by
`POST /api/v2/workspaceagents/me/vitals`, as servers of earlier releases expect it, and a server that knows neither is
not asked again. No failure here ends a connection.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import h11
import trio
from google.protobuf.empty_pb2 import Empty
from google.protobuf.wrappers_pb2 import StringValue

from coder.agent.disk import in_thread
from coder.agent.platform.pending_reboot import pending_reboot
from coder.agent.reports.flight_recorder import FlightRecorder
from coder.agent.reports.volumes import Usage, read_volumes
from coder.base.errors import CoderError
from coder.base.host import container_memory
from coder.base.json_types import JsonObject
from coder.base.log import get_logger
from coder.base.retry import spread
from coder.domain.agents.flight_events import FlightEvent
from coder.domain.agents.reporting import VITALS_INTERVAL
from coder.net.errors import HttpError
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy
from coder.rpc.errors import INVALID_ARGUMENT, UNIMPLEMENTED, RpcClosed, RpcError
from coder.rpc.services import AGENT_REPORTS

if TYPE_CHECKING:
    from coder.agent.network.overlay import AgentNetwork
    from coder.rpc.session import Session

log = get_logger("agent")

PATH = "/api/v2/workspaceagents/me/vitals"
PEER_TIMEOUT = 180.0
"""Seconds (ours) since its last handshake within which a peer counts as active; WireGuard's own sessions last that
long."""
_TIMEOUT = 20.0
_RECORD_TIMEOUT = 2.0
"Seconds (ours) the first report waits for the previous process's record."
_ANSWER = 64 << 10
_UNKNOWN = frozenset({404, 405})


async def report_loop(
    session: Session, policy: DialPolicy, recorder: FlightRecorder, network: AgentNetwork, home: Path
) -> None:
    """Report for the life of a connection; return when the server knows neither the call nor the route."""
    knows_call = True
    with trio.move_on_after(_RECORD_TIMEOUT):
        await recorder.opened.wait()
    while True:
        events = recorder.unsent()
        usage = (await read_volumes([home]))[home]
        try:
            reading = await in_thread(read_host, usage)
        except OSError as error:
            log.debug("reading this machine failed", error=error)
            await trio.sleep(spread(VITALS_INTERVAL))
            continue
        body = report(reading | network.peers_in_use(PEER_TIMEOUT), events, datetime.now(UTC))
        status = await _call(session, body) if knows_call else await _send(policy, body)
        if status in _UNKNOWN and knows_call:
            knows_call = False
            status = await _send(policy, body)
        if status in _UNKNOWN:
            return
        if status is not None and (status < 300 or status == 400):
            recorder.mark_sent(events)
        await trio.sleep(spread(VITALS_INTERVAL))


async def _call(session: Session, body: JsonObject) -> int | None:
    """Report on the session; return the status that the route would answer, None for a failure that may pass."""
    try:
        with trio.move_on_after(_TIMEOUT) as timeout:
            await session.call(AGENT_REPORTS + "ReportVitals", StringValue(value=json.dumps(body)), Empty)
    except RpcError as error:
        log.debug("the server rejected readings", error=error)
        if error.number == UNIMPLEMENTED or "unknown rpc" in error.text:
            return 404
        return 400 if error.number == INVALID_ARGUMENT else None
    except (RpcClosed, trio.BrokenResourceError) as error:
        log.debug("sending readings failed", error=error)
        return None
    return None if timeout.cancelled_caught else 204


async def _send(policy: DialPolicy, body: JsonObject) -> int | None:
    try:
        async with HttpClient(policy) as client:
            # `json=` would load its codec, a megabyte, for the only document that an idle agent sends.
            text, kind = json.dumps(body).encode(), [("Content-Type", "application/json")]
            answer = await client.request("POST", PATH, body=text, headers=kind, timeout=_TIMEOUT, limit=_ANSWER)
            return answer.status
    except HttpError as error:
        log.debug("the server rejected readings", error=error)
        return error.status
    except (CoderError, OSError, trio.BrokenResourceError, h11.RemoteProtocolError) as error:
        log.debug("sending readings failed", error=error)
        return None


def report(reading: JsonObject, events: list[FlightEvent], now: datetime) -> JsonObject:
    """Return the body of a report."""
    event_list: list[JsonObject] = [{"at": _time(event.at), "kind": event.kind, "data": event.data} for event in events]
    return {"sent_at": now.isoformat(), "events": event_list, **reading}


def _time(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (OverflowError, ValueError, OSError):  # an invalid time in the file
        return datetime.fromtimestamp(0, UTC).isoformat()


def read_host(disk: Usage) -> JsonObject:
    """Return the machine's readings; None for an unavailable value."""
    disk_used, disk_total = disk
    memory_used, memory_total = container_memory()
    return {
        "disk_used": disk_used,
        "disk_total": disk_total,
        "memory_used": memory_used,
        "memory_total": memory_total,
        "memory_pressure": pressure(_text("/proc/pressure/memory")),
        "load": _load(),
        "cores": os.cpu_count(),
        "uptime_s": uptime(_text("/proc/uptime")),
        "reboot_pending": pending_reboot(),
    }


def pressure(text: str) -> float | None:
    """Return `avg10` of the line `some` (Documentation/accounting/psi.rst)."""
    for line in text.splitlines():
        if line.startswith("some "):
            for field in line.split()[1:]:
                name, _, value = field.partition("=")
                if name == "avg10":
                    return _number(value)
    return None


def uptime(text: str) -> float | None:
    """Return the seconds since the machine started."""
    return _number(text.split(maxsplit=1)[0]) if text.split() else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _load() -> float | None:
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return None


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""
