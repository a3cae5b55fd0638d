"""Signatures of releases: Ed25519 in minisign's format, so that `minisign -V` verifies the same files.

A signature file has four lines: an untrusted comment, base64 of algorithm, key id and signature, a trusted comment, and
base64 of a second signature over the first one and the trusted comment. Algorithm "ED" signs the BLAKE2b-512 hash of
the file, "Ed" the file itself. Source: https://jedisct1.github.io/minisign/#signature-format
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from coder.base.errors import CoderError

SUMS = "SHA256SUMS"
SUFFIX = ".minisig"
TRUSTED = "trusted comment: "
_KEY_BYTES, _SIGNATURE_BYTES, _ID_BYTES, _HASH_BYTES = 32, 64, 8, 32
_PARENTS = 8
"Folders above a file in which its checksums are searched: a release's apt repository has five levels."
_LONGEST_TEXT = 1 << 22
"Bytes of a signature, key or list of checksums; a release has about a hundred lines of 100 bytes."


@dataclass(frozen=True, slots=True)
class PublicKey:
    """Minisign public key: an id of 8 bytes and an Ed25519 key of 32 bytes."""

    id: bytes
    key: bytes

    @property
    def name(self) -> str:
        """The id as minisign prints it."""
        return self.id[::-1].hex().upper()


@dataclass(frozen=True, slots=True)
class Signature:
    """Parsed signature file."""

    is_hashed: bool
    "Whether the signature covers the BLAKE2b-512 hash instead of the file."
    key_id: bytes
    signature: bytes
    trusted_comment: str
    global_signature: bytes
    "Over the signature and the trusted comment."


@dataclass(frozen=True, slots=True)
class Verified:
    """Result of a verification that succeeded."""

    sha256: str
    signature: Path
    "Signature file that was used."
    listed_as: str
    "Name in SHA256SUMS; empty if the signature is the file's own."
    key: PublicKey
    trusted_comment: str


class NotVerifiedError(CoderError):
    """The file is not what the key's owner released: do not run it."""


def parse_public_key(text: str) -> PublicKey:
    """Parse a public key: its base64 line, or a key file with the comment line. Raise CoderError."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("untrusted comment:")]
    raw = _decoded(lines[0]) if len(lines) == 1 else b""
    if len(raw) != 2 + _ID_BYTES + _KEY_BYTES or raw[:2] != b"Ed":
        raise CoderError("release_key", "this is not a minisign public key", "A key is one line that starts with RW.")
    return PublicKey(raw[2 : 2 + _ID_BYTES], raw[2 + _ID_BYTES :])


def parse_signature(text: str) -> Signature:
    """Parse a signature file. Raise CoderError."""
    lines = text.splitlines()
    if len(lines) >= 4 and lines[2].startswith(TRUSTED):
        raw, global_signature = _decoded(lines[1]), _decoded(lines[3])
        if len(raw) == 2 + _ID_BYTES + _SIGNATURE_BYTES and len(global_signature) == _SIGNATURE_BYTES:
            algorithm, key_id, signature = raw[:2], raw[2 : 2 + _ID_BYTES], raw[2 + _ID_BYTES :]
            if algorithm in {b"ED", b"Ed"}:
                comment = lines[2].removeprefix(TRUSTED)
                return Signature(algorithm == b"ED", key_id, signature, comment, global_signature)
    raise CoderError("release_signature", "this is not a minisign signature", "Download the signature again.")


def _decoded(line: str) -> bytes:
    try:
        return base64.b64decode(line, validate=True)
    except (binascii.Error, ValueError):
        return b""


def check_signature(path: Path, signature: Signature, keys: Iterable[PublicKey]) -> PublicKey:
    """Return the key that signed a file. Raise NotVerifiedError, CoderError if the file cannot be read."""
    known = {key.id: key for key in keys}
    key = known.get(signature.key_id)
    if key is None:
        names = ", ".join(sorted(item.name for item in known.values()))
        raise NotVerifiedError(
            "release_key_unknown",
            f"{path.name} is signed with the key {signature.key_id[::-1].hex().upper()}, not with {names}",
            "Use the release key that its publisher announced, with --key, or download the file from its publisher.",
        )
    public = Ed25519PublicKey.from_public_bytes(key.key)
    try:
        public.verify(signature.signature, digest_of(path, "blake2b") if signature.is_hashed else _read(path))
        public.verify(signature.global_signature, signature.signature + signature.trusted_comment.encode())
    except InvalidSignature:
        raise NotVerifiedError(
            "release_signature_wrong",
            f"the signature of {path.name} is wrong: the file or its signature was changed",
            "Do not run it. Download the file and its signature again from the publisher.",
        ) from None
    return key


def verify_file(path: Path, keys: Iterable[PublicKey], *, signature: Path | None = None) -> Verified:
    """Verify a file with its own signature, or with a signed SHA256SUMS in its folder or a folder above.

    Raises NotVerifiedError if the file is not the released one, CoderError if the check is impossible.
    """
    pinned = tuple(keys)
    sha256 = digest_of(path, "sha256").hex()
    own = signature or path.with_name(path.name + SUFFIX)
    if signature is not None or own.is_file():
        parsed = parse_signature(_text(own))
        key = check_signature(path, parsed, pinned)
        return Verified(sha256, own, "", key, parsed.trusted_comment)
    sums = _find_sums(path)
    listing = sums.with_name(SUMS + SUFFIX)
    parsed = parse_signature(_text(listing))
    key = check_signature(sums, parsed, pinned)
    name, expected = _listed(path, sums)
    if not expected:
        raise NotVerifiedError(
            "release_file_unknown",
            f"{sums} does not list {path.name}",
            "Rename the file to its name in the release, or download it from the publisher.",
        )
    if not hmac.compare_digest(expected, bytes.fromhex(sha256)):
        raise NotVerifiedError(
            "release_hash_wrong",
            f"{path.name} has the SHA-256 {sha256}, the signed {SUMS} has {expected.hex()}",
            "Do not run it. Download the file again from the publisher.",
        )
    return Verified(sha256, listing, name, key, parsed.trusted_comment)


def parse_sums(text: str) -> dict[str, bytes]:
    """Return the SHA-256 of each name in the output of `sha256sum`. Raise CoderError for a line of another form, or a
    name that is listed twice."""
    sums: dict[str, bytes] = {}
    for number, line in enumerate(text.splitlines(), 1):
        digest, _, name = line.partition("  ")
        try:
            value = bytes.fromhex(digest)
        except ValueError:
            value = b""
        if len(value) != _HASH_BYTES or not name or name in sums:
            raise CoderError(
                "release_sums", f"line {number} of {SUMS} is not a checksum and a new name", f"Download {SUMS} again."
            )
        sums[name] = value
    return sums


def digest_of(path: Path, algorithm: str) -> bytes:
    """Return a file's hash. Raise CoderError if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, algorithm).digest()
    except OSError as error:
        raise _unreadable(path, error) from error


def _find_sums(path: Path) -> Path:
    """Return the nearest SHA256SUMS with a signature. Raise CoderError."""
    for folder in list(path.resolve().parents)[:_PARENTS]:
        if (folder / (SUMS + SUFFIX)).is_file() and (folder / SUMS).is_file():
            return folder / SUMS
    raise CoderError(
        "release_signature_missing",
        f"there is neither {path.name}{SUFFIX} nor {SUMS} with {SUMS}{SUFFIX} next to {path.name}",
        f"Download {SUMS} and {SUMS}{SUFFIX} of the release into the same folder, or use --signature.",
    )


def _listed(path: Path, sums: Path) -> tuple[str, bytes]:
    """Return the listed name and SHA-256 of a file: by its path below the list, or by its last part, if only one listed
    file has it (a package of the repository that was downloaded alone). Empty if there is none."""
    listed = parse_sums(_text(sums))
    name = path.resolve().relative_to(sums.parent).as_posix()
    if name not in listed:
        same = [other for other in listed if other.rpartition("/")[2] == path.name]
        name = same[0] if len(same) == 1 else ""
    return name, listed.get(name, b"")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_LONGEST_TEXT).decode()
    except UnicodeDecodeError:
        raise CoderError("release_file", f"{path} is not a text", "Download it again.") from None
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> CoderError:
    reason = error.strerror or type(error).__name__
    return CoderError("release_file", f"{path} cannot be read: {reason}", "Check the path and your permissions.")
