"""File with the state of an SSH connection for IDEs: `<parent pid>.json`.

The parent is the SSH client of this ProxyCommand; editors know its process id and read the file of that name. Fields
and units are the original's. The file is kept at exit: editors clean up their directory themselves.
"""

from __future__ import annotations

import json
from pathlib import Path

import trio

from coder.base.atomic_file import write_atomically
from coder.base.caller import parent_pid
from coder.base.errors import CoderError
from coder.base.json_types import JsonObject
from coder.base.log import get_logger
from coder.client.link import WorkspaceLink
from coder.mesh.description import PingResult
from coder.mesh.errors import MeshError

_log = get_logger("network-info")


class Rates:
    """Rates in bytes per second between two readings of growing totals."""

    def __init__(self, now: float) -> None:
        self._at = now
        self._totals = (0, 0)

    def since_last(self, sent: int, received: int, now: float) -> tuple[int, int]:
        """Return (upload, download) in bytes per second."""
        seconds = now - self._at
        before, self._at, self._totals = self._totals, now, (sent, received)
        if seconds <= 0:
            return 0, 0
        return int((sent - before[0]) / seconds), int((received - before[1]) / seconds)


def describe(link: WorkspaceLink, ping: PingResult, rates: Rates, now: float) -> JsonObject:
    """Return the file's content. Latencies are in milliseconds, regions by name."""
    info = link.node.self_info
    latencies = {
        _region_name(link, int(key.partition("-")[0])): seconds * 1000 for key, seconds in info.derp_latency.items()
    }
    preferred = _region_name(link, ping.region or info.preferred_derp)
    latencies.setdefault(preferred, 0.0)
    peers = link.node.status().peers
    upload, download = rates.since_last(sum(p.tx_bytes for p in peers), sum(p.rx_bytes for p in peers), now)
    return {
        "p2p": ping.via == "direct",
        "latency": round(ping.latency_s * 1000, 3),
        "preferred_derp": preferred,
        "derp_latency": latencies,
        "upload_bytes_sec": upload,
        "download_bytes_sec": download,
        "using_coder_connect": False,
    }


def _region_name(link: WorkspaceLink, region: int) -> str:
    return link.regions.get(region) or f"Unnamed {region}"


async def write_network_info(link: WorkspaceLink, directory: str, interval: float) -> None:
    """Write the file now and every `interval` seconds until cancelled. Raise CoderError for an unusable directory."""
    folder = Path(directory)
    path = folder / f"{parent_pid()}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CoderError("network_info", f"cannot create the directory {folder}", "Choose a writable path.") from error
    rates = Rates(trio.current_time())
    await link.wait_reachable()
    while True:
        try:
            content = describe(link, await link.ping(), rates, trio.current_time())
            write_atomically(
                path, json.dumps(content), mode=0o644
            )  # written atomically, as an editor can read at any moment
        except (OSError, CoderError, MeshError, trio.BrokenResourceError) as error:
            _log.debug("no network information in this round", error=error)  # no answer yet; the next round retries
        await trio.sleep(interval)
