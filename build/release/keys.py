"""The key of a release: Ed25519, from a PEM file. It signs minisign signatures, provenance and the apt repository.

    openssl genpkey -algorithm ed25519 -out release-key.pem

CODER_RELEASE_KEY_PASSWORD is the password of an encrypted file. Ed25519 signatures have no random part, so that the
same input gives the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

PASSWORD = "CODER_RELEASE_KEY_PASSWORD"  # noqa: S105 - the variable's name


@dataclass(frozen=True, slots=True)
class ReleaseKey:
    """Private key of a release."""

    private: Ed25519PrivateKey

    @property
    def public(self) -> bytes:
        """The public key, 32 bytes."""
        return self.private.public_key().public_bytes_raw()

    @property
    def id(self) -> bytes:
        """Minisign's key id, 8 bytes: here the start of the public key's hash, so that it needs no second file."""
        return hashlib.sha256(self.public).digest()[:8]

    @property
    def public_line(self) -> str:
        """The public key as minisign writes it: base64 of algorithm, id and key."""
        return base64.b64encode(b"Ed" + self.id + self.public).decode()

    @property
    def public_file(self) -> str:
        """Content of the public key file, as `minisign -p` reads it."""
        return f"untrusted comment: minisign public key {self.id[::-1].hex().upper()}\n{self.public_line}\n"

    def minisign(self, data: bytes, comment: str) -> str:
        """Return the signature file of some bytes, with a comment that is signed too. Source: minisign's format."""
        raw = b"ED" + self.id + self.private.sign(hashlib.blake2b(data).digest())
        second = self.private.sign(raw[10:] + comment.encode())
        lines = ["untrusted comment: signature of a release", base64.b64encode(raw).decode()]
        lines += [f"trusted comment: {comment}", base64.b64encode(second).decode()]
        return "".join(f"{line}\n" for line in lines)


def load(path: Path) -> ReleaseKey:
    """Read a private key. Raises SystemExit with the reason."""
    password = os.environ.get(PASSWORD)
    try:
        key = load_pem_private_key(path.read_bytes(), password.encode() if password else None)
    except OSError as error:
        raise SystemExit(f"release: {path} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        made = "openssl genpkey -algorithm ed25519 -out FILE"
        raise SystemExit(f"release: {path} is not a readable private key ({error}). Create one: {made}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise SystemExit(f"release: {path} is not an Ed25519 key: openssl genpkey -algorithm ed25519 -out {path}")
    return ReleaseKey(key)
