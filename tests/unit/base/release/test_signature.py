"""Signatures of releases: forged, moved and damaged files are rejected; minisign agrees about every genuine one."""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from coder.base.errors import CoderError
from coder.base.release import signature
from coder.base.release.signature import (
    NotVerifiedError,
    PublicKey,
    parse_public_key,
    parse_signature,
    parse_sums,
    verify_bytes,
    verify_file,
)
from tests.kit.paths import ROOT

sys.path.insert(0, str(ROOT / "build"))
from release.keys import ReleaseKey

KEY = ReleaseKey(Ed25519PrivateKey.from_private_bytes(b"\1" * 32))
OTHER = ReleaseKey(Ed25519PrivateKey.from_private_bytes(b"\2" * 32))
PINNED = [parse_public_key(KEY.public_file)]
PROGRAM = "coder-linux-amd64"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A release of two files with the same last name in different folders, and one program."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for name, data in ((PROGRAM, b"program"), ("a/same", b"first"), ("b/same", b"second"), ("a/only", b"package")):
        (tmp_path / name).write_bytes(data)
    sign(tmp_path, KEY, PROGRAM, "a/same", "b/same", "a/only")
    return tmp_path


def sign(folder: Path, key: ReleaseKey, *names: str) -> None:
    lines = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    (folder / "SHA256SUMS").write_text("".join(lines))
    text = key.minisign((folder / "SHA256SUMS").read_bytes(), "coder 2.34.0")
    (folder / "SHA256SUMS.minisig").write_text(text)


@pytest.mark.parametrize("name", [PROGRAM, "a/same", "b/same", "a/only"])
def test_listed_file_is_verified(folder: Path, name: str) -> None:
    verified = verify_file(folder / name, PINNED)
    assert verified.listed_as == name and verified.trusted_comment == "coder 2.34.0"
    assert verified.sha256 == hashlib.sha256((folder / name).read_bytes()).hexdigest()


def test_package_next_to_checksums_is_found(folder: Path) -> None:
    (folder / "a/only").rename(folder / "only")
    assert verify_file(folder / "only", PINNED).listed_as == "a/only"


def test_own_signature_needs_no_checksums(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"data")
    (tmp_path / "file.minisig").write_text(KEY.minisign(b"data", "of its own"))
    verified = verify_file(tmp_path / "file", [*PINNED, parse_public_key(OTHER.public_line)])
    assert (verified.listed_as, verified.trusted_comment, verified.key.id) == ("", "of its own", KEY.id)


def test_signature_of_unhashed_file_is_verified(tmp_path: Path) -> None:
    """Minisign's old algorithm signs the file itself."""
    (tmp_path / "file").write_bytes(b"data")
    raw = b"Ed" + KEY.id + KEY.private.sign(b"data")
    first, second = (base64.b64encode(part).decode() for part in (raw, KEY.private.sign(raw[10:] + b"y")))
    text = f"untrusted comment: x\n{first}\ntrusted comment: y\n{second}"
    (tmp_path / "file.minisig").write_text(text + "\n")
    assert verify_file(tmp_path / "file", PINNED).trusted_comment == "y"


def changed_file(folder: Path) -> None:
    (folder / PROGRAM).write_bytes(b"other")


def changed_sums(folder: Path) -> None:
    (folder / PROGRAM).write_bytes(b"other")
    text = (folder / "SHA256SUMS.minisig").read_text()
    sign(folder, KEY, PROGRAM)
    (folder / "SHA256SUMS.minisig").write_text(text)


def changed_comment(folder: Path) -> None:
    path = folder / "SHA256SUMS.minisig"
    path.write_text(path.read_text().replace("2.34.0", "9.99.9"))


def signed_by_another(folder: Path) -> None:
    sign(folder, OTHER, PROGRAM)


def signed_under_a_known_id(folder: Path) -> None:
    sign(folder, OTHER, PROGRAM)
    lines = (folder / "SHA256SUMS.minisig").read_text().splitlines()
    raw = base64.b64decode(lines[1])
    lines[1] = base64.b64encode(raw[:2] + KEY.id + raw[10:]).decode()
    (folder / "SHA256SUMS.minisig").write_text("\n".join(lines) + "\n")


def unlisted(folder: Path) -> None:
    sign(folder, KEY, "a/same")


@pytest.mark.parametrize(
    ("forge", "code"),
    [
        (changed_file, "release_hash_wrong"),
        (changed_sums, "release_signature_wrong"),
        (changed_comment, "release_signature_wrong"),
        (signed_by_another, "release_key_unknown"),
        (signed_under_a_known_id, "release_signature_wrong"),
        (unlisted, "release_file_unknown"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_forgery_is_not_verified(forge, code: str, folder: Path) -> None:  # type: ignore[no-untyped-def]
    forge(folder)
    with pytest.raises(NotVerifiedError) as caught:
        verify_file(folder / PROGRAM, PINNED)
    assert caught.value.code == code and caught.value.hint


def test_ambiguous_name_is_not_verified(folder: Path) -> None:
    shutil.copyfile(folder / "a/same", folder / "same")
    with pytest.raises(NotVerifiedError, match="does not list same"):
        verify_file(folder / "same", PINNED)


@pytest.mark.parametrize("missing", ["SHA256SUMS", "SHA256SUMS.minisig", PROGRAM])
def test_missing_file_is_no_forgery(folder: Path, missing: str) -> None:
    (folder / missing).unlink()
    with pytest.raises(CoderError) as caught:
        verify_file(folder / PROGRAM, PINNED)
    assert not isinstance(caught.value, NotVerifiedError) and caught.value.hint


def with_own_signature(folder: Path) -> None:
    (folder / f"{PROGRAM}.minisig").write_text(KEY.minisign((folder / PROGRAM).read_bytes(), "coder 2.34.0"))


@pytest.mark.parametrize("prepare", [lambda folder: None, with_own_signature], ids=["listed", "own"])
def test_every_file_is_read_once(
    folder: Path, prepare: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second reading could see other bytes than the verified ones."""
    prepare(folder)
    opened: list[str] = []
    original = Path.open

    def counted(self: Path, *arguments: Any, **options: Any) -> Any:
        opened.append(self.name)
        return original(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", counted)
    assert verify_file(folder / PROGRAM, PINNED).sha256 == hashlib.sha256(b"program").hexdigest()
    assert PROGRAM in opened and len(opened) == len(set(opened))


@pytest.mark.parametrize("name", ["SHA256SUMS", "SHA256SUMS.minisig"])
def test_longer_text_is_no_cut_text(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signature covers the whole list: a name behind the limit must not look unlisted."""
    monkeypatch.setattr(signature, "LONGEST_TEXT", 1000)
    (folder / name).write_bytes((folder / name).read_bytes() + b"\n" * 1000)
    with pytest.raises(CoderError, match=f"{name} is larger than") as caught:
        verify_file(folder / PROGRAM, PINNED)
    assert not isinstance(caught.value, NotVerifiedError)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({}, ""),
        ({"data": b"other"}, "release_hash_wrong"),
        ({"name": "coder-linux-arm64"}, "release_file_unknown"),
        ({"sums": b"0" * 64 + b"  coder-linux-amd64\n"}, "release_signature_wrong"),
        ({"keys": [parse_public_key(OTHER.public_line)]}, "release_key_unknown"),
    ],
)
def test_downloaded_bytes_are_verified(folder: Path, changed: dict[str, Any], code: str) -> None:
    given: dict[str, Any] = {
        "name": PROGRAM,
        "data": b"program",
        "sums": (folder / "SHA256SUMS").read_bytes(),
        "signature": (folder / "SHA256SUMS.minisig").read_bytes(),
        "keys": PINNED,
    } | changed
    if not code:
        assert verify_bytes(**given).listed_as == PROGRAM
        return
    with pytest.raises(NotVerifiedError) as caught:
        verify_bytes(**given)
    assert caught.value.code == code


@pytest.mark.parametrize("text", ["", "a\nb\nc\nd\n", KEY.minisign(b"", "x")[:150], "x\n!!!\ntrusted comment: \n\n"])
def test_damaged_signature_is_rejected(text: str) -> None:
    with pytest.raises(CoderError, match="not a minisign signature"):
        parse_signature(text)


@pytest.mark.parametrize("text", ["", "RW", "é", KEY.public_line + "\n" + OTHER.public_line, KEY.public_line[:-4]])
def test_damaged_key_is_rejected(text: str) -> None:
    with pytest.raises(CoderError, match="not a minisign public key"):
        parse_public_key(text)


@pytest.mark.parametrize("line", ["abc  x", "0" * 64 + " x", "0" * 64, f"{'0' * 64}  x\n{'1' * 64}  x"])
def test_damaged_checksums_are_rejected(line: str) -> None:
    with pytest.raises(CoderError, match="is not a checksum"):
        parse_sums(line + "\n")


@pytest.mark.skipif(shutil.which("minisign") is None, reason="minisign is not installed")
def test_minisign_verifies_the_same_files(folder: Path) -> None:
    (folder / "release.pub").write_text(KEY.public_file)
    command = ["minisign", "-Vm", str(folder / "SHA256SUMS"), "-p", str(folder / "release.pub")]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "Trusted comment: coder 2.34.0" in shown
    changed_comment(folder)
    assert subprocess.run(command, check=False, capture_output=True).returncode


def test_key_name_is_minisigns() -> None:
    assert PublicKey(KEY.id, KEY.public).name in KEY.public_file.splitlines()[0]
