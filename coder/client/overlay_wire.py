"""Protocol between commands and the process that shares their overlay, on a unix socket of the user.

Each connection carries one request: a JSON frame (with a four-byte length) in each direction; after a successful
`connect`, the connection is the stream. Tokens are never sent: both sides read the user's configuration directory.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import struct

import trio

from coder.base.errors import CoderError
from coder.base.json_types import JsonObject

LIMIT = 1 << 16
_LENGTH = struct.Struct("<I")
_CREDENTIALS = struct.Struct("3i")


def is_own(connection: trio.socket.SocketType) -> bool:
    """Return whether the peer is a process of this user."""
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return bool(_CREDENTIALS.unpack(data)[1] == os.geteuid())


def token_digest(token: str) -> str:
    """Return a digest of the token, so that two processes can compare it without sending it."""
    return hashlib.sha256(b"coder overlay\0" + token.encode()).hexdigest()


async def send_frame(stream: trio.SocketStream, content: JsonObject) -> None:
    body = json.dumps(content).encode()
    await stream.send_all(_LENGTH.pack(len(body)) + body)


async def receive_frame(stream: trio.SocketStream) -> JsonObject:
    """Read a frame. Raise CoderError `overlay` for invalid data."""
    (size,) = _LENGTH.unpack(await _exactly(stream, _LENGTH.size))
    if size > LIMIT:
        raise CoderError("overlay", "the shared overlay's answer is too large")
    message = json.loads(await _exactly(stream, size))
    if not isinstance(message, dict):
        raise CoderError("overlay", "the shared overlay's answer is invalid")
    return message


async def _exactly(stream: trio.SocketStream, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = await stream.receive_some(size - len(data))
        if not chunk:
            raise CoderError("overlay", "the shared overlay closed the connection")
        data += chunk
    return data
