"""Reports of a running job, to a server that cannot tell whether it stored one."""

from __future__ import annotations

from typing import Any

import pytest

from coder.provisionerd.config import DaemonConfig
from coder.provisionerd.report import Reporter
from coder.rpc.errors import OUTCOME_UNKNOWN, RpcError
from coder.rpc.proto import provisioner_pb2 as pb
from coder.rpc.proto import provisionerd_pb2 as pd


class Link:
    """Fails the first call with an error of this number."""

    def __init__(self, number: int) -> None:
        self._number = number
        self.sent: list[tuple[list[str], bytes]] = []

    async def call(self, _method: str, request: pd.UpdateJobRequest, reply: Any) -> Any:
        self.sent.append(([line.output for line in request.logs], request.readme))
        if len(self.sent) == 1:
            raise RpcError(self._number, "the database does not tell whether the change was made")
        return reply(canceled=True)


def update() -> pd.UpdateJobRequest:
    return pd.UpdateJobRequest(job_id="1", logs=[pd.Log(output="line", level=pb.LogLevel.INFO)], readme=b"# Template")


async def test_lines_of_unknown_outcome_are_sent_once() -> None:
    """The rest of the update is repeated: its answer is needed."""
    link = Link(OUTCOME_UNKNOWN)
    reporter = Reporter(link, "1", DaemonConfig())  # type: ignore[arg-type]
    assert (await reporter.update(update())).canceled
    assert link.sent == [(["line"], b"# Template"), ([], b"# Template")]


async def test_refused_update_is_not_repeated() -> None:
    link = Link(0)
    with pytest.raises(RpcError):
        await Reporter(link, "1", DaemonConfig()).update(update())  # type: ignore[arg-type]
    assert len(link.sent) == 1
