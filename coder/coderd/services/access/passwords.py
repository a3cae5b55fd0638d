"""Password hashing: argon2id in a worker thread, so that a login does not block the server.

Accounts imported from the original (`coder server import`) have its hashes, PBKDF2 with HMAC-SHA256 as
`$pbkdf2-sha256$<iterations>$<salt>$<hash>`, base64 without padding. They are verified too, and replaced at a login.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac

import trio
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from coder.api.base.refusals import Invalid
from coder.domain.access.passwords import explain_password

# OWASP's second choice: 19 MiB and two passes, about 20 ms. Two concurrent hashes bound the memory.
_hasher = PasswordHasher(time_cost=2, memory_cost=19456, parallelism=1)
_PBKDF2 = "$pbkdf2-sha256$"
_MOST_ITERATIONS = 5_000_000
"""Limit of the iterations of a stored hash: some seconds of a thread."""
_limiter: trio.CapacityLimiter | None = None


@functools.cache
def _unknown_user_hash() -> str:
    """Return the hash that a login of an unknown user is compared with, so that it takes as long."""
    return _hasher.hash("no user has this password")


def _threads() -> trio.CapacityLimiter:
    global _limiter
    if _limiter is None:
        _limiter = trio.CapacityLimiter(2)
    return _limiter


async def hash_password(password: str) -> str:
    return await trio.to_thread.run_sync(_hasher.hash, password, limiter=_threads())


async def verify_password(hashed: str, password: str) -> bool:
    """Verify a password. An empty `hashed` (no such user) takes as long as a wrong password."""
    return await trio.to_thread.run_sync(_verify, hashed, password, limiter=_threads())


def is_outdated(hashed: str) -> bool:
    """Return whether a correct password should be hashed again: the hash is the original's."""
    return hashed.startswith(_PBKDF2)


def _verify(hashed: str, password: str) -> bool:
    if is_outdated(hashed):
        return _verify_pbkdf2(hashed, password)
    try:
        _hasher.verify(hashed or _unknown_user_hash(), password)
    except (VerificationError, InvalidHashError):
        return False
    return bool(hashed)


def _verify_pbkdf2(hashed: str, password: str) -> bool:
    try:
        iterations_text, salt_text, key_text = hashed.removeprefix(_PBKDF2).split("$")
        iterations, salt, key = int(iterations_text), _unpadded(salt_text), _unpadded(key_text)
    except ValueError:
        return False
    if not (0 < iterations <= _MOST_ITERATIONS and key):
        return False
    return hmac.compare_digest(hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations, len(key)), key)


def _unpadded(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)


def check_strength(password: str, message: str = "Password is invalid") -> None:
    """Require a strong password. Raises Invalid with the field `password`."""
    why = explain_password(password)
    if why:
        raise Invalid(message, validations=[("password", why)])
