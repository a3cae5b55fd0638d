"""Replay of recorded jobs: the executor replays the recorded responses, the server the recorded replies.

Our daemon must then report what the recorded daemon reported: log lines with their stages, quota, and the final
message.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
import trio
from google.protobuf.json_format import MessageToDict, ParseDict

from coder.provisionerd.config import DaemonConfig
from coder.provisionerd.executors.contract import Settings
from coder.rpc.proto import provisioner_pb2 as pb
from coder.rpc.proto import provisionerd_pb2 as pd
from tests.kit.paths import DATA
from tests.kit.provisioners.scripted_job_server import FakeServer, running_daemon

_WIRE = DATA / "wire"
_KINDS = ("init", "parse", "plan", "graph", "apply")


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (_WIRE / name).read_text().splitlines()]


_SESSIONS = {one["stream"]: one["packets"] for one in _lines("prov_session_decoded.jsonl")}


def _jobs() -> list[list[tuple[str, dict[str, Any]]]]:
    """Return the messages of the daemon's link per job: (direction and type, message)."""
    jobs: list[list[tuple[str, dict[str, Any]]]] = []
    for stream in _lines("prov_daemon_decoded.jsonl"):
        for packet in stream["packets"]:
            if packet["kind"] == "Error":
                jobs[-1].append(("error", {"text": packet["text"]}))
            if packet["kind"] != "Message":
                continue
            if packet["type"] == "provisionerd.AcquiredJob" and packet["json"]:
                jobs.append([])
            if jobs:
                jobs[-1].append((packet["type"], packet["json"]))
    return jobs


_RECORDED = dict(zip(_SESSIONS, _jobs(), strict=True))


class _Playback:
    """Answers each request with its recorded response."""

    def __init__(self, packets: list[dict[str, Any]]) -> None:
        answers = [one["json"] for one in packets if one["kind"] == "Message" and one["dir"] == "s2c"]
        self._messages = [ParseDict(answer, pb.Response()) for answer in answers]

    @asynccontextmanager
    async def open(self, _settings: Settings) -> AsyncIterator[Any]:
        yield self

    def state(self) -> bytes:
        return b""

    def cancel(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name not in _KINDS:
            raise AttributeError(name)

        async def answer(*arguments: Any) -> Any:
            emit = arguments[-1]
            while True:
                await trio.lowlevel.checkpoint()
                message = self._messages.pop(0)
                if message.HasField(cast("Any", name)):
                    return getattr(message, name)
                emit(message.log.level, message.log.output)

        return answer


def _log_lines(updates: list[pd.UpdateJobRequest]) -> list[tuple[int, int, str, str]]:
    return [(log.source, log.level, log.stage, log.output) for update in updates for log in update.logs]


@pytest.mark.parametrize("name", list(_RECORDED))
async def test_recorded_job(name: str, tmp_path: Path, autojump_clock: trio.abc.Clock) -> None:
    link = _RECORDED[name]
    acquired = ParseDict(link[0][1], pd.AcquiredJob())
    updates = [ParseDict(one, pd.UpdateJobRequest()) for kind, one in link if kind == "provisionerd.UpdateJobRequest"]
    server = FakeServer(update_error=next((one["text"] for kind, one in link if kind == "error"), ""))
    for kind, one in link:
        if kind == "provisionerd.UpdateJobResponse" and one.get("variable_values"):
            server.variable_values = list(ParseDict(one, pd.UpdateJobResponse()).variable_values)
        if kind == "provisionerd.CommitQuotaResponse":
            server.quota = ParseDict(one, pd.CommitQuotaResponse())
    server.post(acquired)
    playback = _Playback(_SESSIONS[name])
    async with running_daemon(server, DaemonConfig(work_dir=tmp_path), {"terraform": playback}):
        ended = await server.wait_ended()
    assert _log_lines(server.updates) == _log_lines(updates)
    want_kind, want = next(
        (kind, one) for kind, one in link if kind in {"provisionerd.CompletedJob", "provisionerd.FailedJob"}
    )
    assert ended.DESCRIPTOR.full_name == want_kind
    assert MessageToDict(ended) == MessageToDict(ParseDict(want, type(ended)()))
