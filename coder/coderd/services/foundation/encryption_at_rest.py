"""Encryption of secrets that the server must read again, such as tokens of identity providers.

AES-256-GCM with the keys of `--external-token-encryption-keys` (base64, 32 bytes each; the first one encrypts, all
decrypt). Without keys the texts are stored in plain, as upstream stores them. An encrypted text is `sealed:1:<key
id>:<base64>`, where the key id is the start of the key's SHA-256.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING

from coder.base.errors import CoderError
from coder.base.secret import Secret

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

_MARK = "sealed:1:"
_KEY_BYTES = 32
_NONCE_BYTES = 12


SEALED = re.compile(rf"{_MARK}[0-9a-f]{{8}}:[A-Za-z0-9+/=]+")
"""Pattern of an encrypted text, also inside a longer text."""


def read_keys(texts: Iterable[str], option: str) -> dict[str, bytes]:
    """Return the keys by their ids. Raises CoderError `bad_option`, which names the option, for an unusable key."""
    keys: dict[str, bytes] = {}
    for text in texts:
        try:
            key = base64.b64decode(text, validate=True)
        except ValueError:
            key = b""
        if len(key) != _KEY_BYTES:
            raise CoderError(
                "bad_option",
                f"{option} has a value that is not the base64 of {_KEY_BYTES} bytes",
                "Generate a key with `openssl rand -base64 32`.",
            )
        keys[hashlib.sha256(key).hexdigest()[:8]] = key
    return keys


class Sealer:
    """The encryption keys of this server. Raises CoderError `bad_option` for an unusable key."""

    def __init__(self, ctx: Context) -> None:
        self._keys = read_keys(ctx.config.external_token_encryption_keys, "--external-token-encryption-keys")

    @classmethod
    def of_keys(cls, keys: dict[str, bytes]) -> Sealer:
        """Build a sealer without a server, for commands that work on the database."""
        sealer = cls.__new__(cls)
        sealer._keys = keys
        return sealer

    @property
    def can_seal(self) -> bool:
        """Whether there are keys; without keys texts stay in plain."""
        return bool(self._keys)

    def seal(self, secret: Secret | str) -> str:
        """Return the text to store for a secret."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        text = secret.reveal() if isinstance(secret, Secret) else secret
        if not self._keys or not text:
            return text
        name, key = next(iter(self._keys.items()))
        nonce = secrets.token_bytes(_NONCE_BYTES)
        data = nonce + AESGCM(key).encrypt(nonce, text.encode(), name.encode())
        return f"{_MARK}{name}:{base64.b64encode(data).decode()}"

    def is_plain(self, stored: str) -> bool:
        """Whether a stored text is unencrypted."""
        return not stored.startswith(_MARK)

    def open(self, stored: str) -> Secret:
        """Return the secret of a stored text. Raises CoderError `sealed` when its key is missing."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if not stored.startswith(_MARK):
            return Secret(stored)
        name, _, data = stored.removeprefix(_MARK).partition(":")
        key = self._keys.get(name)
        try:
            if key is None:
                raise InvalidTag
            raw = base64.b64decode(data)
            return Secret(AESGCM(key).decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], name.encode()).decode())
        except (InvalidTag, ValueError) as error:
            raise CoderError(
                "sealed",
                "a stored token cannot be decrypted: its key is not among --external-token-encryption-keys",
                "List the old key after the new one.",
            ) from error
