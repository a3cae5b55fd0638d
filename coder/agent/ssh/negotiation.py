"""Cipher selection: the offered ciphers are chosen once the client's own list is known.

The first of the client's ciphers that the agent also offers is used, and OpenSSH names its fastest last: AES in counter
mode with a separate HMAC costs both ends half as much again as AES-GCM. A client that supports GCM is therefore offered
nothing else. Both lists usually cross on the way; RFC 4253 section 7.1 lets either side wait for the other's, and the
agent waits where the client is known not to wait.

Patches asyncssh (2.24), which has no hook here. The rest of the policy is in server.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncssh
    from asyncssh import sftp
    from asyncssh.packet import SSHPacket

GCM_CIPHERS = (b"aes128-gcm@openssh.com", b"aes256-gcm@openssh.com")
_OPENSSH_PREFIX = b"SSH-2.0-OpenSSH_"
_MAX_PACKET = 35_000
"""Bytes of a packet that every implementation must accept (RFC 4253 section 6.1)."""
_IMPOSSIBLE_USER = "\0"
"""User name that no client can send: names are checked for control characters."""
_GUESS_BY_OUTCOME = b"kexguess2@matt.ucc.asn.au"
_KEXINIT = 20
_FXP_WRITE = 6
_COOKIE_END = 1 + 1 + 16
"""Length of the payload's start: padding length, message number, cookie."""
_ENCRYPTION_LISTS = (2, 3)
"""Indexes among the name lists of a KEXINIT: client to server, server to client."""


def prefer_fast_ciphers(connection: asyncssh.SSHServerConnection) -> None:
    """Make a new connection wait for its client's list, and offer GCM alone where the client supports it."""
    original = connection._recv_handler

    def receive() -> bool:
        received: bytes = connection._inpbuf
        version, end, rest = received.partition(b"\n")
        if end and version.startswith(_OPENSSH_PREFIX):
            offered = encryption_untrusted(rest)
            if offered is None:
                return False  # the list is not complete yet
            common = [
                name for name in GCM_CIPHERS if name in connection._enc_algs and all(name in names for names in offered)
            ]
            if common:
                connection._enc_algs = common
        proceeds: bool = original()
        return proceeds

    connection._recv_handler = receive


def accept_empty_user(connection: asyncssh.SSHServerConnection) -> None:
    """Make a new connection begin authentication for an empty user name, too: Go's clients send one.

    asyncssh begins when the name differs from the current one, which is empty at the start.
    """
    connection._username = _IMPOSSIBLE_USER


def announce_kex_guess2(connection: asyncssh.SSHServerConnection) -> None:
    """Make a new connection announce that a guessed key exchange counts when it is the one agreed upon.

    asyncssh follows this rule; RFC 4253 section 7 counts a guess only where it is first in both lists. Dropbear's
    client always guesses, and follows the RFC unless the server sends this name: the two would then disagree on whether
    its first packet counts.
    """
    connection._kex_algs = [*connection._kex_algs, _GUESS_BY_OUTCOME]


def accept_non_utf8_commands() -> None:
    """Make servers run a command that is not UTF-8: a file's name may be in any encoding, and clients send it as typed.

    asyncssh rejects the request (RFC 4254 section 6.5 names no encoding). Invalid bytes are decoded so that system
    calls restore them (os.fsencode).
    """
    from asyncssh.channel import SSHServerChannel

    def process_exec_request(channel: SSHServerChannel[bytes], packet: SSHPacket) -> bool:
        command = packet.get_string()
        packet.check_end()
        return channel._start_session(command=command.decode(errors="surrogateescape"))

    SSHServerChannel._process_exec_request = process_exec_request  # type: ignore[method-assign, assignment]


def accept_long_writes() -> None:
    """Make SFTP servers accept a WRITE with extra bytes after its data, as OpenSSH's does: rclone 1.60 sends them.

    asyncssh rejects the packet (version 3 ends with the data: draft-ietf-secsh-filexfer-02 section 6.4).
    """
    from asyncssh import sftp

    original = sftp.SFTPServerHandler._process_write

    async def process_write(handler: sftp.SFTPServerHandler, packet: SSHPacket) -> int:
        packet.check_end = _skip_check  # type: ignore[method-assign]
        return await original(handler, packet)

    sftp.SFTPServerHandler._packet_handlers[_FXP_WRITE] = process_write


def _skip_check() -> None:
    pass


def encryption_untrusted(data: bytes) -> Sequence[list[bytes]] | None:
    """Parse the KEXINIT at the start of `data`; return the ciphers for each direction. Empty lists: not a KEXINIT;
    None: incomplete."""
    if len(data) < 4:
        return None
    size = int.from_bytes(data[:4], "big")
    if size > _MAX_PACKET:
        return [[], []]
    if len(data) < 4 + size:
        return None
    packet = data[4 : 4 + size]
    if len(packet) < _COOKIE_END or packet[1] != _KEXINIT:
        return [[], []]
    lists: list[list[bytes]] = []
    at = _COOKIE_END
    while len(lists) <= _ENCRYPTION_LISTS[1]:
        length = int.from_bytes(packet[at : at + 4], "big")
        if at + 4 + length > len(packet):
            return [[], []]
        lists.append(packet[at + 4 : at + 4 + length].split(b","))
        at += 4 + length
    return [lists[index] for index in _ENCRYPTION_LISTS]
