"""Check of a signed program for macOS, without running it: flags, entitlements, page hashes, and the kept payload.

    python build/desktop/signature.py SIGNED UNSIGNED

Ends with code 1 and a sentence for each problem. Whether macOS trusts the certificate is for macOS to say. Sources:
`cs_blobs.h` of XNU, and Apple's technical note TN3126, "Inside Code Signing: Hashes".
"""

from __future__ import annotations

import hashlib
import plistlib
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ENTITLEMENTS = Path(__file__).resolve().parent / "entitlements.plist"
SEGMENT = "__PAYLOAD"
RUNTIME = 0x10000
"CS_RUNTIME: the hardened runtime, which notarisation requires."
_MACHO_64, _SEGMENT_64, _CODE_SIGNATURE = 0xFEEDFACF, 0x19, 0x1D
_SUPERBLOB, _DIRECTORY, _ENTITLEMENTS, _WRAPPER = 0xFADE0CC0, 0xFADE0C02, 0xFADE7171, 0xFADE0B01
_HASHES = {1: "sha1", 2: "sha256", 3: "sha256", 4: "sha384"}
_WITH_TEAM = 0x20200
"First version of the code directory that has a team."


@dataclass
class Signature:
    """Facts of one signature."""

    identifier: str = ""
    team: str = ""
    flags: int = 0
    entitlements: dict[str, Any] = field(default_factory=dict)
    has_certificate: bool = False
    "Whether a certificate's signature is there; an ad-hoc signature has none."
    damaged: list[int] = field(default_factory=list)
    "Numbers of pages whose hash differs."


def read(data: bytes) -> tuple[Signature | None, bytes]:
    """Return the signature of a thin Mach-O file, and the content of its payload's segment. Raises ValueError for a
    damaged file."""
    try:
        return _read(data)
    except (struct.error, IndexError, plistlib.InvalidFileException) as error:
        raise ValueError(f"a damaged Mach-O file: {error}") from error


def _read(data: bytes) -> tuple[Signature | None, bytes]:
    magic, _, _, _, count, _, _, _ = struct.unpack_from("<8I", data)
    if magic != _MACHO_64:
        raise ValueError("not a 64 bit Mach-O file of one processor")
    signature, payload, at = None, b"", 32
    for _ in range(count):
        command, length = struct.unpack_from("<II", data, at)
        if length < 8:
            raise ValueError("an empty load command")
        if command == _SEGMENT_64 and data[at + 8 : at + 24].rstrip(b"\0").decode() == SEGMENT:
            offset, size = struct.unpack_from("<QQ", data, at + 40)
            payload = data[offset : offset + size]
        elif command == _CODE_SIGNATURE:
            (offset,) = struct.unpack_from("<I", data, at + 8)
            signature = _signature(data, offset)
        at += length
    return signature, payload


def _signature(data: bytes, start: int) -> Signature:
    magic, _, count = struct.unpack_from(">III", data, start)
    if magic != _SUPERBLOB:
        raise ValueError("no signature where the load command says")
    found = Signature()
    for index in range(count):
        _, offset = struct.unpack_from(">II", data, start + 12 + 8 * index)
        blob = start + offset
        magic, length = struct.unpack_from(">II", data, blob)
        if magic == _DIRECTORY:
            _add_directory(found, data, blob)
        elif magic == _ENTITLEMENTS:
            found.entitlements = plistlib.loads(data[blob + 8 : blob + length])
        elif magic == _WRAPPER:
            found.has_certificate = length > 8
    return found


def _add_directory(found: Signature, data: bytes, start: int) -> None:
    """Read a code directory, and compare the hashes of the pages that it covers."""
    fields = struct.unpack_from(">7I", data, start + 8)
    version, found.flags, hashes, identifier, _, count, limit = fields
    size, kind, _, page = struct.unpack_from(">4B", data, start + 36)
    found.identifier = _text(data, start + identifier)
    if version >= _WITH_TEAM and (team := struct.unpack_from(">I", data, start + 48)[0]):
        found.team = _text(data, start + team)
    for number in range(count):
        content = data[number << page : min((number + 1) << page, limit)]
        at = start + hashes + number * size
        if hashlib.new(_HASHES[kind], content).digest()[:size] != data[at : at + size]:
            found.damaged.append(number)


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()


def problems(signed: bytes, unsigned: bytes) -> list[str]:
    """Return a sentence for each reason why a signed program would be refused, or would not be the unsigned one."""
    signature, payload = read(signed)
    if signature is None:
        return ["it has no signature"]
    found = [f"page {number} differs from its hash" for number in signature.damaged[:3]]
    if not signature.flags & RUNTIME:
        found.append("the hardened runtime is off")
    if not signature.has_certificate:
        found.append("it is signed ad hoc, without a certificate")
    if signature.entitlements != plistlib.loads(ENTITLEMENTS.read_bytes()):
        found.append(f"it has other entitlements than {ENTITLEMENTS.name}")
    if not payload or payload != read(unsigned)[1]:
        found.append("its payload is not that of the unsigned program")
    return found


def main() -> int:
    signed, unsigned = (Path(word).read_bytes() for word in sys.argv[1:])
    found = problems(signed, unsigned)
    for problem in found:
        print(f"{sys.argv[1]}: {problem}", file=sys.stderr)
    signature, _ = read(signed)
    if signature is not None and not found:
        print(f"{sys.argv[1]}: signed as {signature.identifier}, team {signature.team or 'none'}, hardened runtime")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
