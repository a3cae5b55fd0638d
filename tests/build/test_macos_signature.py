"""Check of signed programs for macOS, on a Mach-O file made here, and by rcodesign where it is installed."""

from __future__ import annotations

import hashlib
import os
import plistlib
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build"))

from desktop import signature

PAGE, HEAD = 12, 4096
RUNTIME, AD_HOC = 0x10000, 0x2


def blob(magic: int, content: bytes) -> bytes:
    return struct.pack(">II", magic, 8 + len(content)) + content


def directory(code: bytes, flags: int) -> bytes:
    """A code directory of version 2.2, which has a team."""
    names = b"com.coder.cli\0TEAM\0"
    pages = [code[at : at + (1 << PAGE)] for at in range(0, len(code), 1 << PAGE)]
    hashes = b"".join(hashlib.sha256(page).digest() for page in pages)
    head = struct.pack(">7I", 0x20200, flags, 52 + len(names), 52, 0, len(pages), len(code))
    head += struct.pack(">4B3I", 32, 2, 0, PAGE, 0, 0, 52 + len(b"com.coder.cli\0"))
    return blob(0xFADE0C02, head + names + hashes)


def program(
    payload: bytes = b"payload" * 1000,
    *,
    flags: int = RUNTIME,
    entitlements: bytes = signature.ENTITLEMENTS.read_bytes(),
    certificate: bytes = b"cms",
    signed: bool = True,
) -> bytes:
    """A Mach-O file of a payload and a signature."""
    segment = struct.pack("<II16s4Q4I", 0x19, 72, b"__PAYLOAD", HEAD, 8192, HEAD, len(payload), 1, 1, 0, 0)
    place = struct.pack("<4I", 0x1D, 16, HEAD + len(payload), 0)
    commands = segment + (place if signed else b"")
    header = struct.pack("<8I", 0xFEEDFACF, 0x0100000C, 0, 2, 1 + signed, len(commands), 0, 0)
    code = (header + commands).ljust(HEAD, b"\0") + payload
    blobs = [(0, directory(code, flags)), (5, blob(0xFADE7171, entitlements)), (0x10000, blob(0xFADE0B01, certificate))]
    start = 12 + 8 * len(blobs)
    index, content = b"", b""
    for kind, data in blobs:
        index += struct.pack(">II", kind, start + len(content))
        content += data
    whole = struct.pack(">III", 0xFADE0CC0, start + len(content), len(blobs)) + index + content
    return code + (whole if signed else b"")


def test_signed_program_is_accepted() -> None:
    assert signature.problems(program(), program(signed=False)) == []
    found, payload = signature.read(program())
    assert found is not None and (found.identifier, found.team) == ("com.coder.cli", "TEAM")
    assert payload == b"payload" * 1000


OTHER = plistlib.dumps({"com.apple.security.get-task-allow": True})


@pytest.mark.parametrize(
    ("signed", "expected"),
    [
        (program(signed=False), "no signature"),
        (program(flags=0), "hardened runtime is off"),
        (program(flags=RUNTIME | AD_HOC, certificate=b""), "signed ad hoc"),
        (program(entitlements=OTHER), "other entitlements"),
        (program(b"another"), "not that of the unsigned program"),
        (program().replace(b"payloadpayload", b"payloadpAyload", 1), "page 1 differs"),
    ],
    ids=["none", "runtime", "ad hoc", "entitlements", "payload", "page"],
)
def test_faulty_signature_is_named(signed: bytes, expected: str) -> None:
    assert expected in signature.problems(signed, program(signed=False))[0]


@pytest.mark.parametrize("data", [b"", b"\x7fELF" + bytes(60), program()[:200]], ids=["empty", "ELF", "half"])
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="Mach-O"):
        signature.read(data)


BUILT = [Path(name) for name in os.environ.get("CODER_TEST_MACOS_PROGRAMS", "").split(":") if name]


@pytest.mark.skipif(not BUILT, reason="built programs for macOS are signed")
@pytest.mark.skipif(shutil.which("rcodesign") is None, reason="rcodesign is not installed")
@pytest.mark.parametrize("built", BUILT, ids=lambda path: path.name)
def test_built_program_can_be_signed(built: Path, tmp_path: Path) -> None:
    """The steps of scripts/sign-macos, with a certificate that no Mac trusts."""
    copy = tmp_path / built.name
    shutil.copyfile(built, copy)
    command = [str(ROOT / "scripts/sign-macos"), "--test", str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert signature.problems(copy.read_bytes(), built.read_bytes()) == []
    shown = subprocess.run(["rcodesign", "print-signature-info", copy], capture_output=True, text=True, check=True)
    assert "CodeSignatureFlags(RUNTIME)" in shown.stdout and "com.coder.cli" in shown.stdout
