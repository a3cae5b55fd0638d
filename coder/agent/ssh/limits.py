"""Limits on what one SSH client may make the agent keep; asyncssh has none.

A client may do everything in its workspace, but other clients' sessions share this process. Beyond a limit a channel, a
variable, a listener or a file is refused; a client whose requests pile up unanswered loses its connection.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVarTuple, cast

from coder.base.files.private_files import open_private
from coder.net.ssh_library import asyncssh

if TYPE_CHECKING:
    from asyncssh.channel import SSHChannel, SSHServerChannel
    from asyncssh.connection import SSHConnection, SSHServerConnection
    from asyncssh.packet import SSHPacket
    from asyncssh.process import SSHServerProcess
    from asyncssh.sftp import SFTPServerHandler

MAX_CHANNELS = 1024
"Open channels of a connection (ours), sessions and forwarded connections together. OpenSSH has 10 sessions."
MAX_LISTENERS = 256
"Ports and sockets (ours) that a connection makes the agent listen on."
MAX_ENVIRONMENT = 1 << 20
"Bytes of variables of a channel (ours), names and values. Linux starts no program with more than 2 MiB."
MAX_QUEUED_REQUESTS, MAX_QUEUED_BYTES = 4096, 2 << 20
"Requests of a channel or a connection (ours), and their bytes, that wait for the answer to the one before them."
MAX_NOTICES = 1024
"Signals and breaks of a session (ours) that its program has not received yet; later ones are dropped."
JOINED = 32 << 10
"Bytes up to which small pieces of input are joined while a program does not read."
MAX_HANDLES = 4096
"Open files and folders of an SFTP session (ours)."

Arguments = TypeVarTuple("Arguments")
Process = Callable[[object, int, int, "SSHPacket"], None]
HandleRequest = Callable[["SFTPServerHandler", "SSHPacket"], Awaitable[object]]


def install_limits() -> None:
    """Install the limits in asyncssh's classes, which have no hooks for them."""
    from asyncssh.channel import SSHChannel, SSHServerChannel
    from asyncssh.connection import SSHConnection, SSHServerConnection
    from asyncssh.process import SSHServerProcess

    _limit_channels(SSHConnection)
    _limit_variables(SSHServerChannel)
    _limit_queue(SSHChannel, asyncssh.constants.MSG_CHANNEL_REQUEST, "_service_next_request", "_request_queue")
    _limit_queue(
        SSHConnection,
        asyncssh.constants.MSG_GLOBAL_REQUEST,
        "_service_next_global_request",
        "_global_request_queue",
    )
    _close_late_listeners(SSHServerConnection)
    _keep_cookies_private()
    _limit_notices(SSHServerProcess)
    _join_unread(SSHChannel)
    _join_unread_of_process(SSHServerProcess)


def may_listen(connection: asyncssh.SSHServerConnection) -> bool:
    """Return whether the client may make the agent listen on one more address."""
    return len(connection._local_listeners) < MAX_LISTENERS


def _limit_channels(kind: type[SSHConnection]) -> None:
    accept = _handler(kind, asyncssh.constants.MSG_CHANNEL_OPEN)

    def process(connection: SSHConnection, pkttype: int, pktid: int, packet: SSHPacket) -> None:
        if len(connection._channels) < MAX_CHANNELS:
            accept(connection, pkttype, pktid, packet)
            return
        packet.get_string()
        connection.send_channel_open_failure(
            packet.get_uint32(), asyncssh.OPEN_RESOURCE_SHORTAGE, "too many open channels", asyncssh.DEFAULT_LANG
        )

    _set_handler(kind, asyncssh.constants.MSG_CHANNEL_OPEN, process)


def _limit_variables(kind: type[SSHServerChannel[bytes]]) -> None:
    def process(channel: SSHServerChannel[bytes], packet: SSHPacket) -> bool:
        name, value = packet.get_string(), packet.get_string()
        packet.check_end()
        # Of all requests, also of one name: their sum costs nothing to know.
        size = int(vars(channel).get("_env_size", 0)) + len(name) + len(value)
        if size > MAX_ENVIRONMENT:
            return False
        vars(channel)["_env_size"] = size
        channel._env[name] = value
        return True

    kind._process_env_request = process  # type: ignore[assignment, method-assign]


def _limit_queue(kind: type[SSHConnection] | type[SSHChannel[bytes]], number: int, serve_next: str, name: str) -> None:
    """Limit the requests that wait for an earlier one, and answer them in a loop.

    asyncssh answers each inside the answer to the one before: 500 waiting requests exceed Python's recursion limit.
    """
    accept = _handler(kind, number)
    serve_one = cast("Callable[[object], None]", getattr(kind, serve_next))
    busy, bytes_name = f"{name}_busy", f"{name}_bytes"

    def process(owner: object, pkttype: int, pktid: int, packet: SSHPacket) -> None:
        queue = vars(owner)[name]
        size = len(packet.get_full_payload()) + (vars(owner).get(bytes_name, 0) if queue else 0)
        if len(queue) >= MAX_QUEUED_REQUESTS or size > MAX_QUEUED_BYTES:
            raise asyncssh.ProtocolError("too many unanswered requests")
        vars(owner)[bytes_name] = size
        accept(owner, pkttype, pktid, packet)

    def serve(owner: object) -> None:
        if vars(owner).get(busy):
            return  # the loop below continues
        vars(owner)[busy] = True
        try:
            while queue := vars(owner)[name]:
                first = queue[0]
                serve_one(owner)
                if queue and queue[0] is first:
                    return  # it is answered later
        finally:
            vars(owner)[busy] = False

    _set_handler(kind, number, process)
    setattr(kind, serve_next, serve)


def _close_late_listeners(kind: type[SSHServerConnection]) -> None:
    """Close listeners that open after their connection ended. asyncssh would listen until the agent ends: the port
    stays taken, and the socket's folder in /tmp stays."""
    clean = kind._cleanup

    def cleanup(connection: SSHServerConnection, exc: Exception | None) -> None:
        vars(connection)[_ENDED] = True
        clean(connection, exc)

    kind._cleanup = cleanup  # type: ignore[assignment, method-assign]
    for name in ("_finish_port_forward", "_finish_path_forward", "create_agent_listener", "attach_x11_listener"):
        setattr(kind, name, _closed_when_late(getattr(kind, name)))


_ENDED = "_has_ended"


def _closed_when_late(
    start: Callable[[SSHServerConnection, *Arguments], Awaitable[object]],
) -> Callable[[SSHServerConnection, *Arguments], Awaitable[object]]:
    async def run(connection: SSHServerConnection, *arguments: *Arguments) -> object:
        try:
            return await start(connection, *arguments)
        finally:
            if vars(connection).get(_ENDED):
                for listener in list(connection._local_listeners.values()):
                    listener.close()
                if connection._agent_listener:
                    connection._agent_listener.close()
                    connection._agent_listener = None
                if connection._x11_listener:
                    connection._x11_listener._tcp_listener.close()
                    connection._x11_listener = None

    return run


def _keep_cookies_private() -> None:
    """Create ~/.Xauthority readable for its user alone, as xauth does: its cookies admit to the display of the client.

    asyncssh leaves it to the umask, and other users of the machine reach the port.
    """
    from asyncssh import x11

    def open_file(path: str, mode: str) -> IO[bytes]:
        return cast("IO[bytes]", open(path, mode, opener=_private))

    vars(x11)["open"] = open_file


def _private(path: str, flags: int) -> int:
    return open_private(Path(path), flags)


def _limit_notices(kind: type[SSHServerProcess[bytes]]) -> None:
    accept = kind.exception_received

    def receive(process: SSHServerProcess[bytes], exc: Exception) -> None:
        queue = process._recv_buf[None]
        if queue and isinstance(exc, asyncssh.TerminalSizeChanged) and isinstance(queue[-1], type(exc)):
            queue[-1] = exc  # only the last size counts
        elif len(queue) < MAX_NOTICES:
            accept(process, exc)

    kind.exception_received = receive  # type: ignore[assignment, method-assign]


def _join_unread(kind: type[SSHChannel[bytes]]) -> None:
    """Join input that waits in a channel.

    Eight million single bytes fit into a window. asyncssh keeps an object of more than thirty bytes for each, in lists
    from which it removes the first: the time is the square of their number.
    """
    accept = kind._accept_data

    def accept_joined(channel: SSHChannel[bytes], data: bytes, datatype: int | None = None) -> None:
        accept(channel, data, datatype)
        queue = channel._recv_buf
        if len(queue) > 1 and queue[-2][1] == datatype and len(queue[-2][0]) + len(queue[-1][0]) <= JOINED:
            last, _ = queue.pop()
            queue[-1] = (queue[-1][0] + last, datatype)

    kind._accept_data = accept_joined  # type: ignore[assignment, method-assign]


def _join_unread_of_process(kind: type[SSHServerProcess[bytes]]) -> None:
    """Join input that a program does not read."""
    accept = kind.data_received

    def receive(process: SSHServerProcess[bytes], data: bytes, datatype: int | None) -> None:
        accept(process, data, datatype)
        queue = process._recv_buf[datatype]
        if len(queue) < 2:
            return
        before, last = queue[-2:]
        if isinstance(before, bytes) and isinstance(last, bytes) and len(before) + len(last) <= JOINED:
            queue[-2:] = [before + last]

    kind.data_received = receive  # type: ignore[assignment, method-assign]


def limit_sftp() -> None:
    """Limit open files and folders: an agent without descriptors serves no other session."""
    handlers = cast("dict[int, HandleRequest]", asyncssh.sftp.SFTPServerHandler._packet_handlers)
    for number in (asyncssh.constants.FXP_OPEN, asyncssh.constants.FXP_OPENDIR):
        handlers[number] = _counted(handlers[number])


def _counted(handle: HandleRequest) -> HandleRequest:
    async def process(handler: SFTPServerHandler, packet: SSHPacket) -> object:
        if len(handler._file_handles) + len(handler._dir_handles) >= MAX_HANDLES:
            raise asyncssh.SFTPFailure("too many open files")
        return await handle(handler, packet)

    return process


def _handler(kind: type[SSHConnection] | type[SSHChannel[bytes]], number: int) -> Process:
    return cast("Process", kind._packet_handlers[number])


def _set_handler(kind: type[SSHConnection] | type[SSHChannel[bytes]], number: int, process: object) -> None:
    kind._packet_handlers = {**kind._packet_handlers, number: cast("Process", process)}
