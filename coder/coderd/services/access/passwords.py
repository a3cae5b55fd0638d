"""Password hashing: argon2id in a worker thread, so that a login does not block the server."""

from __future__ import annotations

import functools

import trio
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from coder.api.base.refusals import Invalid
from coder.domain.access.passwords import explain_password

# OWASP's second choice: 19 MiB and two passes, about 20 ms. Two concurrent hashes bound the memory.
_hasher = PasswordHasher(time_cost=2, memory_cost=19456, parallelism=1)
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


def _verify(hashed: str, password: str) -> bool:
    try:
        _hasher.verify(hashed or _unknown_user_hash(), password)
    except (VerificationError, InvalidHashError):
        return False
    return bool(hashed)


def check_strength(password: str, message: str = "Password is invalid") -> None:
    """Require a strong password. Raises Invalid with the field `password`."""
    why = explain_password(password)
    if why:
        raise Invalid(message, validations=[("password", why)])
