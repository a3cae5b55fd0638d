"""Server of the provider for terraform processes, on a unix socket in a private directory.

Terraform finds it by TF_REATTACH_PROVIDERS: it starts no provider process, contacts no registry, and checks neither
version constraints nor lock file for this provider. One server per job, so jobs cannot see each other's values.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import trio

from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.provisionerd.terraform.provider.grpc import GrpcError, GrpcServer, Status
from coder.provisionerd.terraform.provider.provider import TerraformProvider
from coder.provisionerd.terraform.provider.values import ValueObject

_log = get_logger("provisionerd.provider")
_SERVICE = "/tfplugin5.Provider/"
_SHUTDOWN = "/plugin.GRPCController/Shutdown"
"The call must be answered and obeyed immediately, or terraform waits two seconds."


@dataclass(slots=True)
class PlannedFacts:
    """Properties of a plan, collected while it is made: saves a `terraform show`."""

    daily_cost: int = 0
    ai_tasks: int = 0

    def note(self, kind: str, planned: ValueObject) -> None:
        if kind == "coder_metadata":
            cost = planned.get("daily_cost")
            self.daily_cost += int(cost) if isinstance(cost, int | float) else 0
        elif kind == "coder_ai_task":
            self.ai_tasks += 1


class ServedProvider:
    """Listening provider. `environment` may be replaced between two terraform runs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.environment: Mapping[str, str] = {}
        "CODER_* variables of later connections."
        self.planned = PlannedFacts()

    @property
    def reattach(self) -> str:
        """Value of TF_REATTACH_PROVIDERS."""
        address = {"Network": "unix", "String": str(self._path)}
        entry = {"Protocol": "grpc", "ProtocolVersion": 5, "Pid": os.getpid(), "Test": True, "Addr": address}
        return json.dumps({"coder/coder": entry}, separators=(",", ":"))

    async def _serve_connection(self, stream: trio.SocketStream) -> None:
        async with stream:
            await serve_stream(stream, self.environment, self.planned.note)


@asynccontextmanager
async def serve_provider() -> AsyncIterator[ServedProvider]:
    """Listen until the block ends; the socket and its directory are removed afterwards."""
    # Not in the job's directory: a socket's path must stay below 108 bytes.
    folder = Path(tempfile.mkdtemp(prefix="coder-tf-"))
    try:
        served = ServedProvider(folder / "p")
        with trio.socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            await listener.bind(str(folder / "p"))
            listener.listen(64)
            async with trio.open_nursery() as nursery:
                handler = served._serve_connection
                nursery.start_soon(trio.serve_listeners, handler, [trio.SocketListener(listener)])
                yield served
                nursery.cancel_scope.cancel()
    finally:
        with suppress(OSError):  # by path: a walk through the directory needs descriptors, and there may be none left
            (folder / "p").unlink(missing_ok=True)
            folder.rmdir()


async def serve_stream(
    stream: trio.abc.Stream,
    environment: Mapping[str, str],
    on_planned: Callable[[str, ValueObject], None] = lambda _type, _planned: None,
) -> None:
    """Answer one terraform connection until it closes."""
    provider = TerraformProvider(environment, on_planned=on_planned)
    shutdown_requested = False

    def answer(path: str, body: bytes) -> bytes:
        nonlocal shutdown_requested
        if path == _SHUTDOWN:
            shutdown_requested = True
            return b""
        return _dispatch(provider, path, body)

    server = GrpcServer(answer)
    try:
        await stream.send_all(server.take_output())
        while not (server.closed or shutdown_requested):
            data = await stream.receive_some(65536)
            if not data:
                return
            server.receive_untrusted(bytes(data))
            output = server.take_output()
            if output:
                await stream.send_all(output)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass  # terraform was killed; its parent process reports that
    except CoderError as problem:
        _log.warn("connection to terraform broken", error=problem)


def _dispatch(provider: TerraformProvider, path: str, body: bytes) -> bytes:
    method = path.removeprefix(_SERVICE)
    if not path.startswith(_SERVICE) or method not in provider.methods:
        raise GrpcError(Status.UNIMPLEMENTED, f"unknown method {path}")
    try:
        return provider.call(method, body)
    except Exception as problem:
        # A template must get an error, not a hanging terraform: report the bug as the call's status.
        _log.error("provider call failed", method=method, error=problem)
        raise GrpcError(Status.INTERNAL, f"{method}: {type(problem).__name__}: {problem}") from problem
