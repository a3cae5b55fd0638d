"""Values that the original has encrypted: AES-256-GCM, base64 of nonce and ciphertext, the key named by a digest."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence

from coder.base.errors import CoderError
from coder.coderd.services.foundation.encryption_at_rest import Sealer

_NONCE_BYTES = 12
_TEST = "coder"
_OPTION = "--external-token-encryption-keys"


class Reencryption:
    """Decrypts the original's values and encrypts them with this server's first key."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        """`keys`: the site's keys, the new one first, as `read_keys` returns them."""
        self.sealer = Sealer.of_keys(dict(keys))
        self._keys = {hashlib.sha256(key).hexdigest()[:7]: key for key in keys.values()}

    def require(self, digests: Mapping[str, str]) -> None:
        """Require the keys with these digests, and that they decrypt the original's test values. Raises CoderError
        `sealed`."""
        lacking = [digest for digest in digests if digest not in self._keys]
        if lacking:
            raise CoderError(
                "sealed",
                f"the source has values encrypted with a key that was not given: {', '.join(lacking)}",
                f"Set {_OPTION} to the original's keys; they encrypt the values here, too. Or decrypt the source first "
                "with the original's `coder server dbcrypt decrypt`.",
            )
        for digest, test in digests.items():
            if test and self.open(digest, test) != _TEST:
                raise CoderError("sealed", f"the key {digest} does not decrypt the source's values")

    def open(self, digest: str | None, text: str) -> str:
        """Return the plain text. Raises CoderError `sealed`."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if not digest or not text:
            return text
        try:
            data = base64.b64decode(text, validate=True)
            return AESGCM(self._keys[digest]).decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], None).decode()
        except (InvalidTag, ValueError, KeyError) as error:
            raise CoderError("sealed", f"a value of the source cannot be decrypted with the key {digest}") from error

    def convert(self, row: Sequence[object], sealed: Mapping[int, int]) -> tuple[object, ...]:
        """Return the row for this database. `sealed`: positions of values and of their key ids, which are removed."""
        values = list(row)
        for at, key_at in sealed.items():
            text = self.open(_text(values[key_at]), _text(values[at]) or "")
            values[at] = self.sealer.seal(text)
        return tuple(values[: len(values) - len(sealed)])


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
