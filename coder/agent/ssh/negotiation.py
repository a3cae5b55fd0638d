"""Which ciphers a connection is offered, decided once the client's own list is known.

The first of the client's ciphers that we offer, too, is used, and OpenSSH names its fastest last: AES in counter mode
with a separate HMAC costs both ends half as much again as AES-GCM. Whoever knows GCM is therefore offered nothing else.
Both lists usually cross on the way; RFC 4253 section 7.1 lets either side wait for the other's, and we do where we know
that the client does not wait for ours.

Reaches into asyncssh (2.24), which has no hook here. Does not live here: the rest of the policy (server.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncssh.packet import SSHPacket

FAST = (b"aes128-gcm@openssh.com", b"aes256-gcm@openssh.com")
_SPEAKS_FIRST = b"SSH-2.0-OpenSSH_"
_LONGEST = 35_000
"""RFC 4253 section 6.1: bytes of a packet everybody takes."""
_NOBODY = "\0"
"""No client can send it: names are checked against control characters."""
_GUESS_BY_OUTCOME = b"kexguess2@matt.ucc.asn.au"
_KEXINIT = 20
_FXP_WRITE = 6
_COOKIE_END = 1 + 1 + 16
"""Of the payload: padding length, message number, cookie."""
_ENCRYPTION_LISTS = (2, 3)
"""Among the name lists of a KEXINIT: client to server, server to client."""


def prefer_fast_ciphers(connection: Any) -> None:
    """Have a connection that was just made wait for its client's list, and answer with GCM alone where that will do."""
    plain = connection._recv_handler

    def receive() -> bool:
        waiting: bytes = connection._inpbuf
        version, end, rest = waiting.partition(b"\n")
        if end and version.startswith(_SPEAKS_FIRST):
            offered = encryption_untrusted(rest)
            if offered is None:
                return False  # its list is still on the way
            common = [name for name in FAST if name in connection._enc_algs and all(name in names for names in offered)]
            if common:
                connection._enc_algs = common
        proceeds: bool = plain()
        return proceeds

    connection._recv_handler = receive


def take_any_user(connection: Any) -> None:
    """Have a connection that was just made begin authentication for an empty user name, too: Go's clients send one.

    asyncssh begins when the name is another than the one it knows, and it begins with an empty one.
    """
    connection._username = _NOBODY


def judge_guesses_by_the_outcome(connection: Any) -> None:
    """Have a connection that was just made say that a guessed key exchange counts when it is the one agreed upon.

    That is how asyncssh judges; RFC 4253 section 7 counts a guess only where it is first in both lists. Dropbear's
    client guesses always, and follows the RFC unless this name tells it otherwise: the two would then disagree on
    whether its first packet stands.
    """
    connection._kex_algs = [*connection._kex_algs, _GUESS_BY_OUTCOME]


def take_any_command() -> None:
    """Have servers run a command that is no UTF-8: a file's name may be in any encoding, and clients send it as typed.

    asyncssh refuses the request (RFC 4254 section 6.5 names no encoding). Bytes that are none become what the system's
    calls turn back into them (os.fsencode).
    """
    from asyncssh.channel import SSHServerChannel

    def process_exec_request(channel: SSHServerChannel[bytes], packet: SSHPacket) -> bool:
        command = packet.get_string()
        packet.check_end()
        return channel._start_session(command=command.decode(errors="surrogateescape"))

    SSHServerChannel._process_exec_request = process_exec_request  # type: ignore[method-assign, assignment]


def take_longer_writes() -> None:
    """Have SFTP servers take a WRITE with bytes behind its data, as OpenSSH's does: rclone 1.60 sends them.

    asyncssh refuses the packet (its version 3 ends with the data: draft-ietf-secsh-filexfer-02 section 6.4).
    """
    from asyncssh import sftp

    plain = sftp.SFTPServerHandler._process_write

    async def process_write(handler: Any, packet: Any) -> int:
        packet.check_end = _nothing
        return await plain(handler, packet)

    sftp.SFTPServerHandler._packet_handlers[_FXP_WRITE] = process_write


def _nothing() -> None:
    pass


def encryption_untrusted(data: bytes) -> Sequence[list[bytes]] | None:
    """The ciphers for each direction in the KEXINIT `data` begins with; empty: it is none; None: not all is there."""
    if len(data) < 4:
        return None
    size = int.from_bytes(data[:4], "big")
    if size > _LONGEST:
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
