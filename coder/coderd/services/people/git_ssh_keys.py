"""Git SSH keys of users: a key pair generated with the user, with which workspaces fetch source code.

The private key is encrypted in the database where the site has encryption keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.api.base.refusals import NotFound
from coder.api.login.external_auth import GitSSHKey
from coder.coderd.services.access.authorization import require
from coder.coderd.store.people import git_ssh_keys as store
from coder.domain.access.policy import Object, Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.people.users import UserRow


@dataclass(frozen=True, slots=True)
class KeyPair:
    private_key: str
    public_key: str


async def generate(ctx: Context) -> KeyPair:
    """Generate a key pair to store: ed25519, ecdsa or rsa4096. RSA takes a second, hence the thread."""
    algorithm = ctx.config.ssh_keygen_algorithm
    if algorithm == "ed25519":
        pair = _generate(algorithm)
    else:
        pair = await trio.to_thread.run_sync(_generate, algorithm)
    sealer = ctx.services.sealer
    return KeyPair(sealer.seal(pair.private_key), pair.public_key)


def opened(ctx: Context, stored: str) -> str:
    """Return the decrypted private key of a stored one."""
    sealer = ctx.services.sealer
    return sealer.open(stored).reveal()


def _generate(algorithm: str) -> KeyPair:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    private: ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
    if algorithm == "ecdsa":
        private = ec.generate_private_key(ec.SECP256R1())
    elif algorithm == "rsa4096":
        private = rsa.generate_private_key(65537, 4096)
    else:
        private = ed25519.Ed25519PrivateKey.generate()
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    line = private.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return KeyPair(pem.decode(), line.decode() + "\n")


async def insert(tx: Tx, user_id: UUID, pair: KeyPair, now: datetime) -> None:
    await store.put_git_ssh_key(tx, user_id, pair.private_key, pair.public_key, now)


async def get(ctx: Context, subject: Subject, user: UserRow) -> GitSSHKey:
    require(subject, "read_personal", Object("user", str(user.id), owner_id=user.id))
    row = await ctx.db.read(store.get_git_ssh_key, user.id)
    if row is None:
        raise NotFound
    return _view(row)


async def regenerate(ctx: Context, subject: Subject, user: UserRow) -> GitSSHKey:
    require(subject, "update_personal", Object("user", str(user.id), owner_id=user.id))
    pair = await generate(ctx)
    await ctx.db.run(store.put_git_ssh_key, user.id, pair.private_key, pair.public_key, ctx.clock.now())
    row = await ctx.db.read(store.get_git_ssh_key, user.id)
    if row is None:
        raise NotFound
    return _view(row)


def _view(row: store.GitSSHKeyRow) -> GitSSHKey:
    return GitSSHKey(
        user_id=row.user_id, created_at=row.created_at, updated_at=row.updated_at, public_key=row.public_key
    )
