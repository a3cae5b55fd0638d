"""Mask session tokens of builds in texts that others than their owner may read: state, logs and metadata."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import TYPE_CHECKING

from coder.coderd.services.access.authentication import hash_secret
from coder.coderd.store.access import build_keys
from coder.domain.access.build_tokens import find_tokens, mask_tokens

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_AT_ONCE = 1000
"""Tokens per query: a text may contain any number of look-alikes."""


async def mask_build_tokens(tx: Tx, texts: Sequence[str]) -> list[str]:
    """Return the texts without valid tokens of builds, and of keys created with them.

    The server stores hashes, so every text in the form of a token is compared with the key of that id. Texts without
    one cost no query. Encoded tokens (base64) are not recognized.
    """
    candidates = sorted(set().union(*(find_tokens(text) for text in texts)))
    tokens: set[str] = set()
    for start in range(0, len(candidates), _AT_ONCE):
        some = candidates[start : start + _AT_ONCE]
        hashes = await build_keys.hashes_of_build_keys(tx, {token.partition("-")[0] for token in some})
        for token in some:
            key_id, _, secret = token.partition("-")
            if key_id in hashes and hmac.compare_digest(hashes[key_id], hash_secret(secret)):
                tokens.add(token)
    return [mask_tokens(text, tokens) for text in texts] if tokens else list(texts)


async def mask_in_bytes(tx: Tx, text: bytes) -> bytes:
    """Return the same for bytes of any encoding that contains ASCII, such as a Terraform state."""
    (masked,) = await mask_build_tokens(tx, [text.decode("latin-1")])
    return masked.encode("latin-1")
