"""OpenPGP certificate and signatures of the release's Ed25519 key, for apt and rpm, which verify nothing else.

Version 4 packets with EdDSA (RFC 9580, sections 4 to 6 and the algorithm EdDSALegacy, which GnuPG 2.1 and later
verify). Written here because gpg would need a second key and its own key ring, and adds the time of signing. The same
key, time and data give the same bytes. scripts/release verifies the result with gpgv.

    python -m release.openpgp KEY TIME SIGNATURE FILE      # the call that rpmsign makes
"""

from __future__ import annotations

import base64
import hashlib
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

from release import keys
from release.keys import ReleaseKey

CREATED = 1767225600
"""Creation time of every certificate, 2026-01-01: a part of the fingerprint, so that it must not change."""
EDDSA, SHA512 = 22, 10
_CURVE = bytes.fromhex("092b06010401da470f01")
"Length and object identifier of Ed25519."
_PUBLIC_KEY, _USER_ID, _SIGNATURE = 6, 13, 2
_BINARY, _TEXT, _CERTIFICATION = 0x00, 0x01, 0x13
_TIME, _KEY_FLAGS, _ISSUER, _ISSUER_FINGERPRINT = 2, 27, 16, 33
_CERTIFY_AND_SIGN = b"\x03"


@dataclass(frozen=True, slots=True)
class Signer:
    """Maker of signatures with a fixed time."""

    key: ReleaseKey
    time: int
    "Of the signatures, in seconds since 1970."

    @property
    def _public(self) -> bytes:
        return struct.pack(">BIB", 4, CREATED, EDDSA) + _CURVE + _integer(b"\x40" + self.key.public)

    @property
    def fingerprint(self) -> bytes:
        """The certificate's fingerprint, 20 bytes."""
        return hashlib.sha1(_key_prefix(self._public), usedforsecurity=False).digest()

    def certificate(self, user: str) -> bytes:
        """Return the public certificate with a user id, in binary form."""
        name = user.encode()
        signed = _key_prefix(self._public) + struct.pack(">BI", 0xB4, len(name)) + name
        flags = _subpacket(_KEY_FLAGS, _CERTIFY_AND_SIGN)
        signature = self._sign(_CERTIFICATION, signed, flags, CREATED)
        return _packet(_PUBLIC_KEY, self._public) + _packet(_USER_ID, name) + signature

    def detached(self, data: bytes) -> bytes:
        """Return a binary signature packet of some bytes."""
        return self._sign(_BINARY, data, b"", self.time)

    def clearsigned(self, text: str) -> str:
        """Return a text with its signature around it (RFC 9580, section 7)."""
        lines = [line.rstrip(" \t\r") for line in text.rstrip("\n").split("\n")]
        packet = self._sign(_TEXT, "\r\n".join(lines).encode(), b"", self.time)
        escaped = "\n".join(f"- {line}" if line.startswith("-") else line for line in lines)
        return f"-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n{escaped}\n{armored(packet, 'SIGNATURE')}"

    def _sign(self, kind: int, data: bytes, additional: bytes, time: int) -> bytes:
        fingerprint = self.fingerprint
        hashed = _subpacket(_TIME, struct.pack(">I", time)) + additional
        hashed += _subpacket(_ISSUER_FINGERPRINT, b"\x04" + fingerprint)
        start = struct.pack(">BBBBH", 4, kind, EDDSA, SHA512, len(hashed)) + hashed
        digest = hashlib.sha512(data + start + struct.pack(">BBI", 4, 0xFF, len(start))).digest()
        unhashed = _subpacket(_ISSUER, fingerprint[-8:])
        signature = self.key.private.sign(digest)
        body = start + struct.pack(">H", len(unhashed)) + unhashed + digest[:2]
        return _packet(_SIGNATURE, body + _integer(signature[:32]) + _integer(signature[32:]))


def armored(data: bytes, kind: str) -> str:
    """Return bytes as ASCII armor with its checksum."""
    crc = 0xB704CE
    for byte in data:
        crc ^= byte << 16
        for _ in range(8):
            crc = (crc << 1) ^ (0x1864CFB if crc & 0x800000 else 0)
    text = base64.b64encode(data).decode()
    lines = [text[start : start + 64] for start in range(0, len(text), 64)]
    check = base64.b64encode(crc.to_bytes(3, "big")).decode()
    return "\n".join([f"-----BEGIN PGP {kind}-----", "", *lines, f"={check}", f"-----END PGP {kind}-----", ""])


def _key_prefix(public: bytes) -> bytes:
    return struct.pack(">BH", 0x99, len(public)) + public


def _packet(tag: int, body: bytes) -> bytes:
    """Return a packet in the new format with a length of five bytes."""
    return struct.pack(">BBI", 0xC0 | tag, 0xFF, len(body)) + body


def _subpacket(kind: int, data: bytes) -> bytes:
    return struct.pack(">BB", len(data) + 1, kind) + data


def _integer(data: bytes) -> bytes:
    """Return a multiprecision integer: the number of bits, then the bytes without leading zeros."""
    value = data.lstrip(b"\0")
    bits = len(value) * 8 - (8 - value[0].bit_length()) if value else 0
    return struct.pack(">H", bits) + value


def main() -> int:
    key, time, target, source = sys.argv[1:]
    data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    Path(target).write_bytes(Signer(keys.load(Path(key)), int(time)).detached(data))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
