"""UDP in batches: one non-blocking socket per address family, drained and filled with few system calls.

Lives here: socket options, segmentation offload (UDP_SEGMENT, UDP_GRO) with a fallback per socket, and the calls
themselves. `core/endpoint.py` interprets datagrams; nothing here is a trio call, because a trio call per datagram costs
5-9 us where a drained one costs 0.1-1.2 us. `pump.py` waits for readability. Numbers from linux/udp.h and linux/in.h;
the offload rules were measured (docs/performance.md, "UDP offload").
"""

from __future__ import annotations

import errno
import socket
import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Final

from coder.mesh.core.paths.candidates import Address

_SOL_UDP: Final = 17
_UDP_SEGMENT: Final = 103
_UDP_GRO: Final = 104
_IP_MTU_DISCOVER: Final = 10
_IPV6_MTU_DISCOVER: Final = 23
_PMTUDISC_DO: Final = 2

RECEIVE_SIZE: Final = 65_536
"""A coalesced read into a smaller buffer would silently lose the rest of its datagrams."""
MAX_SEGMENTS: Final = 44
MAX_GSO_BYTES: Final = 65_487
_BUFFER_STEPS: Final = (8 << 20, 4 << 20, 2 << 20, 1 << 20, 512 << 10, 256 << 10)
_DRAIN_READS: Final = 32
_DRAIN_DATAGRAMS: Final = 128
"""Enough to amortise one wake-up, few enough that acknowledgements stay timely."""
_SECOND_READ_EVERY: Final = 3
"""A request and its answer come alone. Three wake-ups of four skip the second call for them, which finds nothing and
raises. If there is more after all, the next wake-up comes immediately, and the second call soon follows again."""

_NO_OFFLOAD: Final = {errno.EIO, errno.EINVAL, errno.ENOPROTOOPT, errno.EOPNOTSUPP}
_PATH_ERRORS: Final = {
    errno.ENETUNREACH,
    errno.EHOSTUNREACH,
    errno.ENETDOWN,
    errno.EHOSTDOWN,
    errno.EMSGSIZE,
    errno.EADDRNOTAVAIL,
    errno.EPERM,
    errno.EACCES,
    errno.EINVAL,
    errno.EAFNOSUPPORT,
}

OnBatch = Callable[[bytearray, int, int, Address], None]
"""(buffer, bytes used, bytes per datagram, source). The buffer is reused after the call."""


class Sent(Enum):
    """Result of handing datagrams to the operating system."""

    YES = "sent"
    DROPPED = "dropped"
    """Buffers are full: the datagrams are lost, as they may be on the path."""
    REFUSED = "refused"
    """The address is unreachable, or the datagram too big for its path."""


class DatagramSocket:
    """A socket of one family, and its counters."""

    def __init__(self, family: socket.AddressFamily, port: int = 0, host: str = "") -> None:
        self.family = family
        self.sock = socket.socket(family, socket.SOCK_DGRAM)
        try:
            self.sock.setblocking(False)
            self._set_options()
            self.sock.bind((host or ("::" if family == socket.AF_INET6 else "0.0.0.0"), port))
        except OSError:
            self.sock.close()
            raise
        self.port: int = self.sock.getsockname()[1]
        self.dropped = 0
        self.system_calls_in = 0
        self.system_calls_out = 0
        self._single_reads = 0
        """Consecutive wake-ups with a single datagram."""
        self._buffer = bytearray(RECEIVE_SIZE)
        self._buffers = [self._buffer]
        self._segment_option = [(_SOL_UDP, _UDP_SEGMENT, b"")]
        self._segment_size = 0

    def _set_options(self) -> None:
        sock = self.sock
        self.receive_buffer = _grow(sock, socket.SO_RCVBUF)
        """Bytes granted; the stack keeps its bursts below this."""
        self.send_buffer = _grow(sock, socket.SO_SNDBUF)
        self.gso = self.gro = False
        if self.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if not sys.platform.startswith("linux"):
            return
        # A lost fragment is a lost packet, and many networks drop fragments: disco must detect that, not the data.
        if self.family == socket.AF_INET6:
            _try_option(sock, socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER, _PMTUDISC_DO)
        else:
            _try_option(sock, socket.IPPROTO_IP, _IP_MTU_DISCOVER, _PMTUDISC_DO)
        self.gro = _try_option(sock, _SOL_UDP, _UDP_GRO, 1)
        # Kernels with GRO (5.0) have segmentation (4.18) too; a device may still refuse on the first send.
        self.gso = self.gro

    @property
    def is_open(self) -> bool:
        """Whether the socket is open."""
        return self.sock.fileno() >= 0

    def close(self) -> None:
        """Release the port."""
        self.sock.close()

    # -- receiving --------------------------------------------------------------------------------------------------
    def drain(self, on_batch: OnBatch) -> int:
        """Read waiting datagrams, up to a batch; return their number. Call again when it returned many."""
        if not self.gro:
            return self._drain_singly(on_batch)
        receive, buffers, buffer = self.sock.recvmsg_into, self._buffers, self._buffer
        datagrams = 0
        for _ in range(_DRAIN_READS):
            try:
                size, ancillary, _, source = receive(buffers, 64)
            except (BlockingIOError, InterruptedError):
                break
            except OSError:
                continue  # an ICMP error of an earlier send; the socket stays usable
            self.system_calls_in += 1
            if not size:
                continue
            segment = _gro_size(ancillary) or size
            on_batch(buffer, size, segment, source if len(source) == 2 else source[:2])
            datagrams += 1 if size == segment else -(-size // segment)
            if datagrams >= _DRAIN_DATAGRAMS or (datagrams == 1 and self._single_reads & _SECOND_READ_EVERY):
                break
        self._single_reads = 0 if datagrams > 1 else self._single_reads + 1
        return datagrams

    def _drain_singly(self, on_batch: OnBatch) -> int:
        buffer = self._buffer
        for datagrams in range(_DRAIN_DATAGRAMS):
            try:
                size, source = self.sock.recvfrom_into(buffer)
            except (BlockingIOError, InterruptedError):
                return datagrams
            except OSError:
                continue
            self.system_calls_in += 1
            if size:
                on_batch(buffer, size, size, source[:2])
        return _DRAIN_DATAGRAMS

    # -- sending ----------------------------------------------------------------------------------------------------
    def send(self, datagram: bytes | memoryview, to: Address) -> Sent:
        """Send one datagram."""
        try:
            self.system_calls_out += 1
            self.sock.sendto(datagram, to)
        except OSError as error:
            return self._failed(error)
        return Sent.YES

    def send_batch(self, batch: memoryview, segment: int, to: Address) -> Sent:
        """Send a buffer of datagrams of `segment` bytes, the last of which may be shorter; at most 44."""
        if self.gso and len(batch) > segment:
            if segment != self._segment_size:
                self._segment_size = segment
                self._segment_option = [(_SOL_UDP, _UDP_SEGMENT, struct.pack("=H", segment))]
            try:
                self.system_calls_out += 1
                self.sock.sendmsg((batch,), self._segment_option, 0, to)
            except OSError as error:
                if error.errno not in _NO_OFFLOAD:
                    return self._failed(error)
                self.gso = False
            else:
                return Sent.YES
        for at in range(0, len(batch), segment):
            sent = self.send(batch[at : at + segment], to)
            if sent is not Sent.YES:
                return sent
        return Sent.YES

    def send_many(self, datagrams: Sequence[bytes], to: Address) -> Sent:
        """Send datagrams of any sizes, in order; runs of equal size are sent together."""
        if len(datagrams) == 1:
            return self.send(datagrams[0], to)
        sent = Sent.YES
        for run in equal_runs(datagrams):
            if len(run) == 1:
                sent = self.send(run[0], to)
            else:
                sent = self.send_batch(memoryview(b"".join(run)), len(run[0]), to)
            if sent is Sent.REFUSED:
                return sent
        return sent

    def _failed(self, error: OSError) -> Sent:
        self.dropped += 1
        return Sent.REFUSED if error.errno in _PATH_ERRORS else Sent.DROPPED


def equal_runs(datagrams: Iterable[bytes]) -> list[list[bytes]]:
    """Split into groups that one segmented send can carry: equal sizes, a shorter one may end the group."""
    runs: list[list[bytes]] = []
    size = total = 0
    is_open = False
    for datagram in datagrams:
        length = len(datagram)
        if is_open and length <= size and len(runs[-1]) < MAX_SEGMENTS and total + length <= MAX_GSO_BYTES:
            runs[-1].append(datagram)
            total += length
            is_open = length == size
        else:
            runs.append([datagram])
            size = total = length
            is_open = True
    return runs


def _gro_size(ancillary: list[tuple[int, int, bytes]]) -> int:
    for level, kind, data in ancillary:
        if level == _SOL_UDP and kind == _UDP_GRO:
            return int.from_bytes(data[:4], sys.byteorder)
    return 0


def _grow(sock: socket.socket, option: int) -> int:
    """Request the largest buffer the system grants; return what it granted (Linux counts double for bookkeeping)."""
    for size in _BUFFER_STEPS:
        try:
            sock.setsockopt(socket.SOL_SOCKET, option, size)
            break
        except OSError:
            continue
    return sock.getsockopt(socket.SOL_SOCKET, option)


def _try_option(sock: socket.socket, level: int, option: int, value: int) -> bool:
    try:
        sock.setsockopt(level, option, value)
    except OSError:
        return False
    return True
