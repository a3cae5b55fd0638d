"""What commands and the process that shares their overlay say to each other, on a unix socket of the person's.

One connection asks for one thing: a frame of JSON (four bytes of length before it) each way; after a granted
`connect` the connection is the stream. No token is said: both sides read the person's configuration directory.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import struct
from typing import Any

import trio

from coder.base.errors import CoderError

LIMIT = 1 << 16
_LENGTH = struct.Struct("<I")
_CREDENTIALS = struct.Struct("3i")


def is_own(connection: trio.socket.SocketType) -> bool:
    """Whether a process of this user is at the other end."""
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return bool(_CREDENTIALS.unpack(data)[1] == os.geteuid())


def token_digest(token: str) -> str:
    """Tells whether two processes mean the same token without saying it."""
    return hashlib.sha256(b"coder overlay\0" + token.encode()).hexdigest()


async def send_frame(stream: trio.SocketStream, content: dict[str, Any]) -> None:
    body = json.dumps(content).encode()
    await stream.send_all(_LENGTH.pack(len(body)) + body)


async def receive_frame(stream: trio.SocketStream) -> dict[str, Any]:
    """Raises CoderError `overlay` for anything that is no frame."""
    (size,) = _LENGTH.unpack(await _exactly(stream, _LENGTH.size))
    if size > LIMIT:
        raise CoderError("overlay", "the shared overlay answered with too much")
    found = json.loads(await _exactly(stream, size))
    if not isinstance(found, dict):
        raise CoderError("overlay", "the shared overlay answered with something else")
    return found


async def _exactly(stream: trio.SocketStream, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = await stream.receive_some(size - len(data))
        if not part:
            raise CoderError("overlay", "the shared overlay ended the conversation")
        data += part
    return data
