"""Connection of a daemon to the server: the current session, and calls that wait for the next one.

A running job must survive a restart of the server and of its database. So a call is repeated when the connection
ended, on the next connection, and when the server replied that its database does not answer (UNAVAILABLE). Every other
reply of the server, including an error, is final.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio
from google.protobuf.message import Message

from coder.base.log import get_logger
from coder.base.retry import Backoff
from coder.provisionerd.archive import MAX_BYTES
from coder.provisionerd.config import DaemonConfig
from coder.rpc.calls import Received
from coder.rpc.errors import UNAVAILABLE, RpcClosed, RpcError
from coder.rpc.proto import provisioner_pb2 as pb
from coder.rpc.proto import provisionerd_pb2 as pd
from coder.rpc.services import PROVISIONER_DAEMON
from coder.rpc.session import Session

T = TypeVar("T")
_log = get_logger("provisionerd.link")

MAX_MESSAGE = 4 * 1024 * 1024
CHUNK_SIZE = 2 * 1024 * 1024


class Link:
    def __init__(self, config: DaemonConfig) -> None:
        self._config = config
        self._session: Session | None = None
        self._changed = trio.Event()
        self._is_unavailable = False

    def set_session(self, session: Session | None) -> None:
        self._session = session
        self._changed.set()
        self._changed = trio.Event()

    @property
    def is_connected(self) -> bool:
        return self._session is not None and not self._session.is_closed

    async def session(self) -> Session:
        """Return the live session; wait for one."""
        while self._session is None or self._session.is_closed:
            await self._changed.wait()
        return self._session

    async def call(self, method: str, request: Message, reply: type[Received], *, final: bool = False) -> Received:
        """Make a unary call. Raises RpcError.

        `final`: the call ends the job, so "already completed", after an attempt whose reply was lost, is a success.
        """
        backoff = Backoff(self._config.retry_first, self._config.retry_last)
        began, was_sent = trio.current_time(), False
        while True:
            session = await self.session()
            try:
                with trio.fail_after(self._config.update_timeout):
                    answer = await session.call(PROVISIONER_DAEMON + method, request, reply)
                self.note_available()
                return answer
            except RpcClosed:
                was_sent = True
            except trio.TooSlowError as problem:
                is_late = trio.current_time() - began > self._config.unanswered_limit
                if await _answers(session) and is_late:
                    text = f"{method} was not answered within {self._config.update_timeout:g}s"
                    raise RpcError(0, text) from problem
                was_sent = True  # the network or the database failed: the request may have arrived or not
            except RpcError as problem:
                if problem.number == UNAVAILABLE:
                    self.note_unavailable(problem)
                    was_sent = True  # it may have been recorded before the database disconnected
                    await trio.sleep(backoff.next_delay())
                    continue
                self.note_available()
                if final and was_sent and "already completed" in problem.text:
                    return reply()
                raise
            await trio.sleep(backoff.next_delay())

    def note_unavailable(self, problem: RpcError) -> None:
        """Log an outage of the server's database once."""
        if not self._is_unavailable:
            self._is_unavailable = True
            _log.warn("waiting for the server's database", daemon=self._config.name, reason=problem.text)

    def note_available(self) -> None:
        """Log the end of an outage of the server's database."""
        if self._is_unavailable:
            self._is_unavailable = False
            _log.info("the server's database answers again", daemon=self._config.name)

    async def _while_unavailable(self, attempt: Callable[[], Awaitable[T]]) -> T:
        backoff = Backoff(self._config.retry_first, self._config.retry_last)
        while True:
            try:
                return await attempt()
            except RpcError as problem:
                if problem.number != UNAVAILABLE:
                    raise
                self.note_unavailable(problem)
            await trio.sleep(backoff.next_delay())

    async def upload(self, data: bytes, digest: bytes) -> None:
        """Send module files in chunks. Raises RpcError, RpcClosed, trio.TooSlowError."""
        await self._while_unavailable(lambda: self._upload(data, digest))

    async def _upload(self, data: bytes, digest: bytes) -> None:
        pieces = [data[start : start + CHUNK_SIZE] for start in range(0, len(data), CHUNK_SIZE)]
        session = await self.session()
        with trio.fail_after(self._config.upload_timeout):
            async with session.open_stream(PROVISIONER_DAEMON + "UploadFile", pb.FileUpload, pd.Empty) as stream:
                head = pb.DataUpload(
                    upload_type=pb.DataUploadType.UPLOAD_TYPE_MODULE_FILES,
                    data_hash=digest,
                    file_size=len(data),
                    chunks=len(pieces),
                )
                await stream.send(pb.FileUpload(data_upload=head))
                for index, piece in enumerate(pieces):
                    chunk = pb.ChunkPiece(data=piece, full_data_hash=digest, piece_index=index)
                    await stream.send(pb.FileUpload(chunk_piece=chunk))
                await stream.close_send()
                await stream.receive()

    async def download(self, file_id: str) -> bytes:
        """Download module files stored with a template version. Raises RpcError, RpcClosed, trio.TooSlowError."""
        return await self._while_unavailable(lambda: self._download(file_id))

    async def _download(self, file_id: str) -> bytes:
        request = pd.FileRequest(file_id=file_id, upload_type=pb.DataUploadType.UPLOAD_TYPE_MODULE_FILES)
        received = bytearray()
        session = await self.session()
        with trio.fail_after(self._config.upload_timeout):
            async with session.open_stream(
                PROVISIONER_DAEMON + "DownloadFile", pd.FileRequest, pb.FileUpload
            ) as stream:
                await stream.send(request)
                await stream.close_send()
                async for part in stream:
                    if part.HasField("error"):
                        raise RpcError(0, part.error.error)
                    if part.HasField("chunk_piece"):
                        received += part.chunk_piece.data
                    if len(received) > MAX_BYTES:
                        raise RpcError(0, f"the module files are larger than {MAX_BYTES >> 20} MiB")
        return bytes(received)


async def _answers(session: Session) -> bool:
    """Return whether the server answers a ping."""
    try:
        await session.ping()
    except RpcClosed:
        return False
    return True
