"""The cipher for batches: the bytes of other libraries, forged and repeated datagrams, and machines that lack it."""

from __future__ import annotations

import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from nacl.bindings import crypto_aead_chacha20poly1305_ietf_encrypt

from coder.mesh.core.crypto.noise import TransportKeys
from coder.mesh.core.tunnel.constants import REJECT_AFTER_MESSAGES
from coder.mesh.core.tunnel.keypairs import KeyOwner, Keypair
from coder.mesh.core.wire.batch import TxBuf
from tests.kit.programs import batch_cipher

ROOT = Path(__file__).resolve().parents[5]
KEY = bytes(range(0x80, 0xA0))  # RFC 8439, section 2.8.2
OTHER = bytes(32)
SOURCE = bytes(range(16))
LOCAL, REMOTE = 0x01020304, 0xA1B2C3D4
COUNTERS = (0, 1, 2**32 - 1, 2**32, 2**63, REJECT_AFTER_MESSAGES - 1)


def owner() -> KeyOwner:
    """An owner whose packets come from one address."""
    made = KeyOwner()
    made.allowed = (SOURCE,)
    return made


def keypair(send: bytes = KEY, receive: bytes = KEY) -> Keypair[KeyOwner]:
    return Keypair(owner(), TransportKeys(send, receive), LOCAL, LOCAL, is_initiator=True, now=0.0)


def packet(size: int, fill: int = 0, source: bytes = SOURCE) -> bytes:
    head = b"\x60\0\0\0" + (size - 40).to_bytes(2, "big") + b"\x06\x40" + source + bytes(16)
    return head + bytes((fill,)) * (size - 40)


def sealed(counters: range | list[int], size: int = 96, key: bytes = KEY, source: bytes = SOURCE) -> list[bytes]:
    """Datagrams as the independent library seals them; each holds its counter's last byte."""
    cipher = ChaCha20Poly1305(key)
    return [
        struct.pack("<IIQ", 4, LOCAL, counter)
        + cipher.encrypt(struct.pack("<4xQ", counter), packet(size, counter & 0xFF, source), None)
        for counter in counters
    ]


def opened(keys: Keypair[KeyOwner], datagrams: list[bytes]) -> tuple[list[int], tuple[int, int, int]]:
    """Return the fills of the packets that came out, and what open_run returned."""
    data = b"".join(datagrams)
    out: list[bytes] = []
    result = keys.open_run(memoryview(data), 0, len(data), len(datagrams[0]), out)
    return [plain[-1] for plain in out], result


@pytest.mark.parametrize("counter", COUNTERS)
@pytest.mark.parametrize("size", [0, 1, 16, 63, 64, 65, 1420])
def test_datagrams_match_other_libraries(counter: int, size: int) -> None:
    keys = Keypair(owner(), TransportKeys(KEY, OTHER), 7, REMOTE, is_initiator=True, now=0.0)
    keys.counter = counter
    text = bytes(range(256)) * 6
    datagram = keys.seal_one(text[:size], size)
    nonce = struct.pack("<4xQ", counter)
    assert datagram[:16] == struct.pack("<IIQ", 4, REMOTE, counter)
    assert datagram[16:] == ChaCha20Poly1305(KEY).encrypt(nonce, text[:size], None)
    assert datagram[16:] == crypto_aead_chacha20poly1305_ietf_encrypt(text[:size], None, nonce, KEY)
    assert keys.counter == counter + 1


@pytest.mark.parametrize(("size", "mtu", "padded"), [(41, 1280, 48), (48, 1280, 48), (1275, 1276, 1276), (90, 50, 90)])
def test_one_packet_is_padded(size: int, mtu: int, padded: int) -> None:
    datagram = keypair().seal_one(b"\xff" * size, mtu)
    plain = ChaCha20Poly1305(KEY).decrypt(bytes(12), datagram[16:], None)
    assert plain == b"\xff" * size + bytes(padded - size)


@pytest.mark.parametrize(("packets", "size", "last"), [(1, 1280, 1280), (1, 1280, 48), (44, 1420, 1420), (43, 96, 16)])
def test_superbuffer_matches_single_packets(packets: int, size: int, last: int) -> None:
    keys, txbuf = keypair(), TxBuf(1420)
    keys.counter = 2**32 - 3
    txbuf.buf[:] = bytes(i * 7 & 0xFF for i in range(len(txbuf.buf)))
    stride = size + 32
    plain = [bytes(txbuf.buf[i * stride + 16 :][: size if i < packets - 1 else last]) for i in range(packets)]
    total = keys.seal_into(txbuf, packets, size, last)
    assert total == (packets - 1) * stride + last + 32 and keys.counter == 2**32 - 3 + packets
    cipher = ChaCha20Poly1305(KEY)
    wanted = [
        struct.pack("<IIQ", 4, LOCAL, 2**32 - 3 + i) + cipher.encrypt(struct.pack("<4xQ", 2**32 - 3 + i), text, None)
        for i, text in enumerate(plain)
    ]
    assert bytes(txbuf.buf[:total]) == b"".join(wanted)


def test_run_opens_whole() -> None:
    keys = keypair()
    assert opened(keys, sealed(range(150))) == (list(range(150)), (150 * 128, 150, 150))
    assert keys.replay.newest == 149 and keys.forged == 0


@pytest.mark.parametrize("at", [0, 1, 63, 64, 79])
@pytest.mark.parametrize("byte", [16, 60, 127])
def test_tampered_packet_alone_is_refused(at: int, byte: int) -> None:
    keys, datagrams = keypair(), sealed(range(80))
    spoiled = bytearray(datagrams[at])
    spoiled[byte] ^= 1
    rest = [i for i in range(80) if i != at]
    assert opened(keys, [*datagrams[:at], bytes(spoiled), *datagrams[at + 1 :]]) == (rest, (80 * 128, 79, 79))
    assert keys.forged == 1
    # the window has not moved for it: the genuine datagram still opens, once
    assert opened(keys, [datagrams[at]] * 2) == ([at], (256, 1, 1))
    assert keys.forged == 2


def test_forged_counters_leave_window() -> None:
    keys = keypair()
    forged = [struct.pack("<IIQ", 4, LOCAL, 2**40 + i) + bytes(112) for i in range(3)]
    limit = [struct.pack("<IIQ", 4, LOCAL, REJECT_AFTER_MESSAGES + i) + bytes(112) for i in (0, 2**13)]
    first, second = sealed(range(2))
    assert opened(keys, [forged[0], first, *forged[1:], limit[0], second, limit[1]])[0] == [0, 1]
    assert keys.replay.newest == 1 and keys.forged == 5


def test_repeated_datagrams_are_delivered_once() -> None:
    keys, datagrams = keypair(), sealed(range(6))
    one, two, five = datagrams[1], datagrams[2], datagrams[5]
    assert opened(keys, [one, one, five, two, two, five, datagrams[0]])[0] == [1, 5, 2, 0]
    assert keys.forged == 3
    assert opened(keys, datagrams)[0] == [3, 4]
    assert keys.replay.newest == 5 and keys.forged == 7


def test_late_datagram_behind_window_is_refused() -> None:
    keys = keypair()
    assert opened(keys, sealed([20_000, 3, 19_999]))[0] == [20_000 & 0xFF, 19_999 & 0xFF]
    assert keys.forged == 1


def test_run_stops_at_other_keys() -> None:
    keys, datagrams = keypair(), sealed(range(5))
    other = b"\4\0\0\0" + struct.pack("<I", REMOTE) + datagrams[2][8:]
    kind = b"\1\0\0\0" + datagrams[2][4:]
    for stop in (other, kind):
        fresh = keypair()
        assert opened(fresh, [*datagrams[:2], stop, *datagrams[3:]]) == ([0, 1], (256, 2, 2))
    late = b"\4\0\0\0" + struct.pack("<IQ", REMOTE, 0) + bytes(112)
    assert opened(keys, [*datagrams[:2], late])[1] == (256, 2, 2)


@pytest.mark.parametrize("rest", [0, 1, 31])
def test_short_end_is_skipped(rest: int) -> None:
    data = b"".join(sealed(range(3))) + bytes(rest)
    out: list[bytes] = []
    assert keypair().open_run(memoryview(data), 0, len(data), 128, out) == (len(data), 3, 3)
    assert len(out) == 3


def test_foreign_sources_count_as_heard() -> None:
    keys = keypair()
    mixed = [*sealed([0]), *sealed([1], source=bytes(16)), *sealed([2])]
    assert opened(keys, mixed) == ([0, 2], (384, 3, 3))
    assert opened(keys, sealed([3, 4], source=bytes(16))) == ([], (256, 2, 2))
    keepalive = keypair(receive=OTHER)
    sender = keypair(send=OTHER)
    assert opened(keepalive, [sender.seal_one(b"", 1280), sender.seal_one(b"", 1280)]) == ([], (64, 2, 0))


@pytest.mark.skipif(bool(batch_cipher.MISSING), reason=batch_cipher.MISSING)
class TestCompiled:
    """The class in C by itself."""

    @pytest.fixture
    def cipher(self) -> Any:
        return batch_cipher.load().BatchCipher(KEY)

    @pytest.mark.parametrize(
        ("packets", "size", "last"),
        [(0, 96, 96), (-1, 96, 96), (2, 96, 97), (2, -1, -1), (8, 96, 96), (2**62, 4, 4), (2, 2**62, 4), (1, 96, -33)],
    )
    def test_batch_outside_buffer_is_rejected(self, cipher: Any, packets: int, size: int, last: int) -> None:
        buffer = bytearray(b"\xaa" * 1000)
        with pytest.raises(ValueError, match="within the buffer"):
            cipher.seal(buffer, packets, size, last, 1, 0)
        assert buffer == b"\xaa" * 1000

    @pytest.mark.parametrize(("offset", "total", "segment"), [(-1, 128, 128), (0, 129, 128), (0, 128, 0), (0, 128, -5)])
    def test_run_outside_buffer_is_rejected(self, cipher: Any, offset: int, total: int, segment: int) -> None:
        with pytest.raises(ValueError, match="within the buffer"):
            cipher.open(memoryview(bytes(128)), offset, total, segment, LOCAL, 0)

    @pytest.mark.parametrize("key", [b"", bytes(31), bytes(33)])
    def test_key_of_other_size_is_rejected(self, key: bytes) -> None:
        with pytest.raises(ValueError, match="32 bytes"):
            batch_cipher.load().BatchCipher(key)

    def test_other_threads_run_meanwhile(self, cipher: Any) -> None:
        """A thread that needs the interpreter goes on while a batch is sealed: it sees the cipher in use."""
        done = threading.Event()
        seen: list[str] = []

        def seal_again() -> None:
            while not done.is_set() and not seen:
                try:
                    cipher.seal(bytearray(128), 1, 96, 96, 1, 0)
                except RuntimeError as error:
                    seen.append(str(error))

        other = threading.Thread(target=seal_again)
        other.start()
        buffer = bytearray(65_536)
        try:
            while not seen:
                cipher.seal(buffer, 1, 65_000, 65_000, 1, 0)
        except RuntimeError as error:  # the other thread was first
            seen.append(str(error))
        done.set()
        other.join()
        assert seen[0] == "another thread uses the cipher"


def test_absence_falls_back_to_packets() -> None:
    code = (
        "import sys; sys.modules['coder.mesh.core.crypto._batch_cipher'] = None\n"
        "from coder.mesh.core.crypto import batches\n"
        "print(batches.BATCH_CIPHER, batches.LIBRARY)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout == "None cryptography, packet by packet\n" and not done.stderr
