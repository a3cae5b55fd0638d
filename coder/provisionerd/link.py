"""The daemon's line to the server: whichever session there is now, and calls that wait for the next one.

A running job must survive a server that restarts, so a call that failed because the connection ended is made again
on the next connection. What the server answered, an error too, is final.
"""

from __future__ import annotations

import trio
from google.protobuf.message import Message

from coder.base.retry import Backoff
from coder.provisionerd.config import DaemonConfig
from coder.rpc.calls import Received
from coder.rpc.errors import RpcClosed, RpcError
from coder.rpc.proto import provisioner_pb2 as pb
from coder.rpc.proto import provisionerd_pb2 as pd
from coder.rpc.services import PROVISIONER_DAEMON
from coder.rpc.session import Session

MAX_MESSAGE = 4 * 1024 * 1024
PIECE = 2 * 1024 * 1024


class Link:
    def __init__(self, config: DaemonConfig) -> None:
        self._config = config
        self._session: Session | None = None
        self._changed = trio.Event()

    def set_session(self, session: Session | None) -> None:
        self._session = session
        self._changed.set()
        self._changed = trio.Event()

    @property
    def is_connected(self) -> bool:
        return self._session is not None and not self._session.is_closed

    async def session(self) -> Session:
        """The live session, once there is one."""
        while self._session is None or self._session.is_closed:
            await self._changed.wait()
        return self._session

    async def call(self, method: str, request: Message, reply: type[Received], *, final: bool = False) -> Received:
        """A unary call. Raises RpcError.

        `final`: the call ends the job, so being told that it already ended, after a try whose answer was lost, is
        a success.
        """
        backoff = Backoff(self._config.retry_first, self._config.retry_last)
        tried = False
        while True:
            session = await self.session()
            try:
                with trio.fail_after(self._config.update_timeout):
                    return await session.call(PROVISIONER_DAEMON + method, request, reply)
            except RpcClosed:
                tried = True
            except trio.TooSlowError as problem:
                if await _answers(session):
                    text = f"{method} was not answered within {self._config.update_timeout:g}s"
                    raise RpcError(0, text) from problem
                tried = True  # the network is gone: what was asked may have arrived or not
            except RpcError as problem:
                if final and tried and "already completed" in problem.text:
                    return reply()
                raise
            await trio.sleep(backoff.next_delay())

    async def upload(self, data: bytes, digest: bytes) -> None:
        """Sends module files in pieces. Raises RpcError, RpcClosed, trio.TooSlowError."""
        pieces = [data[start : start + PIECE] for start in range(0, len(data), PIECE)]
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
        """Module files kept with a template version. Raises RpcError, RpcClosed, trio.TooSlowError."""
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
        return bytes(received)


async def _answers(session: Session) -> bool:
    """Whether somebody is at the other end at all."""
    try:
        await session.ping()
    except RpcClosed:
        return False
    return True
