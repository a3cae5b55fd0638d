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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from coder.base.errors import CoderError

SUMS = "SHA256SUMS"
SUFFIX = ".minisig"
TRUSTED = "trusted comment: "
_KEY_BYTES, _SIGNATURE_BYTES, _ID_BYTES, _HASH_BYTES = 32, 64, 8, 32
_PARENTS = 8
"Folders above a file in which its checksums are searched: a release's apt repository has five levels."
LONGEST_TEXT = 1 << 22
"Bytes of a signature, key or list of checksums; a release has about a hundred lines of 100 bytes."
_CHUNK = 1 << 20


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
class Content:
    """Content of a file that was read once."""

    name: str
    sha256: bytes
    blake2b: bytes
    "Of 64 bytes."
    data: bytes
    "The bytes themselves; empty where only the hashes are needed."


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


def content_of(name: str, data: bytes) -> Content:
    """Return the content of bytes that the caller holds and will use."""
    return Content(name, hashlib.sha256(data).digest(), hashlib.blake2b(data).digest(), data)


def check_signature(content: Content, signature: Signature, keys: Iterable[PublicKey]) -> PublicKey:
    """Return the key that signed a content. Raise NotVerifiedError."""
    known = {key.id: key for key in keys}
    key = known.get(signature.key_id)
    if key is None:
        names = ", ".join(sorted(item.name for item in known.values()))
        raise NotVerifiedError(
            "release_key_unknown",
            f"{content.name} is signed with the key {signature.key_id[::-1].hex().upper()}, not with {names}",
            "Use the release key that its publisher announced, with --key, or download the file from its publisher.",
        )
    public = Ed25519PublicKey.from_public_bytes(key.key)
    try:
        public.verify(signature.signature, content.blake2b if signature.is_hashed else content.data)
        public.verify(signature.global_signature, signature.signature + signature.trusted_comment.encode())
    except InvalidSignature:
        raise NotVerifiedError(
            "release_signature_wrong",
            f"the signature of {content.name} is wrong: the file or its signature was changed",
            "Do not run it. Download the file and its signature again from the publisher.",
        ) from None
    return key


def verify_file(path: Path, keys: Iterable[PublicKey], *, signature: Path | None = None) -> Verified:
    """Verify a file with its own signature, or with a signed SHA256SUMS in its folder or a folder above.

    Each file is opened and read once, so that a file that changes meanwhile has one content. Raises NotVerifiedError if
    the file is not the released one, CoderError if the check is impossible.
    """
    try:
        with path.open("rb") as file:
            return _verify_open(path, file, tuple(keys), signature)
    except (OSError, ValueError) as error:  # ValueError: a path with NUL
        raise _unreadable(path, error) from error


def _verify_open(path: Path, file: BinaryIO, keys: tuple[PublicKey, ...], signature: Path | None) -> Verified:
    own = signature or path.with_name(path.name + SUFFIX)
    if signature is not None or own.is_file():
        parsed = parse_signature(_text(own, _bounded(own)))
        content = _content(path.name, file, is_kept=not parsed.is_hashed)
        key = check_signature(content, parsed, keys)
        return Verified(content.sha256.hex(), own, "", key, parsed.trusted_comment)
    sums = _find_sums(path)
    signed, listing = _bounded(sums), sums.with_name(SUMS + SUFFIX)
    key, comment = _check_sums(sums, signed, listing, _bounded(listing), keys)
    listed = parse_sums(_text(sums, signed))
    name = _listed_name(path, sums, listed)
    return _check_listed(_content(path.name, file), name, listed, Verified("", listing, name, key, comment))


def verify_bytes(name: str, data: bytes, sums: bytes, signature: bytes, keys: Iterable[PublicKey]) -> Verified:
    """Verify the bytes of a release's file with those of its SHA256SUMS and their signature, for a caller who then uses
    these bytes. Raises NotVerifiedError, CoderError."""
    path, listing = Path(SUMS), Path(SUMS + SUFFIX)
    key, comment = _check_sums(path, sums, listing, signature, tuple(keys))
    return _check_listed(
        content_of(name, data), name, parse_sums(_text(path, sums)), Verified("", listing, name, key, comment)
    )


def _check_sums(
    path: Path, sums: bytes, listing: Path, signature: bytes, keys: tuple[PublicKey, ...]
) -> tuple[PublicKey, str]:
    """Return the key of a signed SHA256SUMS and the trusted comment."""
    parsed = parse_signature(_text(listing, signature))
    return check_signature(content_of(path.name, sums), parsed, keys), parsed.trusted_comment


def _check_listed(content: Content, name: str, listed: Mapping[str, bytes], verified: Verified) -> Verified:
    """Return the result with the content's hash, which the signed list must have under this name."""
    expected, sha256 = listed.get(name, b""), content.sha256
    if not expected:
        raise NotVerifiedError(
            "release_file_unknown",
            f"{verified.signature.with_suffix('')} does not list {content.name}",
            "Rename the file to its name in the release, or download it from the publisher.",
        )
    if not hmac.compare_digest(expected, sha256):
        raise NotVerifiedError(
            "release_hash_wrong",
            f"{content.name} has the SHA-256 {sha256.hex()}, the signed {SUMS} has {expected.hex()}",
            "Do not run it. Download the file again from the publisher.",
        )
    return replace(verified, sha256=sha256.hex())


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


def _listed_name(path: Path, sums: Path, listed: Mapping[str, bytes]) -> str:
    """Return the listed name of a file: its path below the list, or its last part, if only one listed file has it (a
    package of the repository that was downloaded alone). Empty if there is none."""
    name = path.resolve().relative_to(sums.parent).as_posix()
    if name in listed:
        return name
    same = [other for other in listed if other.rpartition("/")[2] == path.name]
    return same[0] if len(same) == 1 else ""


def _content(name: str, file: BinaryIO, *, is_kept: bool = False) -> Content:
    """Return the content of an open file, read once; the bytes themselves only if they are to be kept. Raises
    OSError."""
    sha256, blake2b, kept = hashlib.sha256(), hashlib.blake2b(), bytearray()
    while chunk := file.read(_CHUNK):
        sha256.update(chunk)
        blake2b.update(chunk)
        if is_kept:
            kept += chunk
    return Content(name, sha256.digest(), blake2b.digest(), bytes(kept))


def _bounded(path: Path) -> bytes:
    """Return the bytes of a short file. Raise CoderError for a longer one: the rest would not be verified."""
    try:
        with path.open("rb") as file:
            data = file.read(LONGEST_TEXT + 1)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    if len(data) > LONGEST_TEXT:
        raise CoderError(
            "release_file", f"{path} is larger than {LONGEST_TEXT >> 20} MiB", "Download it again from the publisher."
        )
    return data


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise CoderError("release_file", f"{path} is not a text", "Download it again.") from None


def _unreadable(path: Path, error: OSError | ValueError) -> CoderError:
    reason = getattr(error, "strerror", None) or "the path is not valid"
    return CoderError("release_file", f"{path} cannot be read: {reason}", "Check the path and your permissions.")
