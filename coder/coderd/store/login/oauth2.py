"""Queries of the OAuth2 provider.

Transactions that issue and revoke tokens lock in this order: the application's row, shared by issuers (`hold_app`) and
exclusive for changes and revocations of the whole application (`lock_app`); the user's row; the consents between the
two (`lock_consents`), which serialize. A revocation queries for tokens in a statement after its lock: so it finds
tokens issued meanwhile, or their issue fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypedDict, Unpack
from uuid import UUID

from sqlalchemy import and_, delete, exists, func, insert, or_, select, union_all, update

from coder.base.json_types import Json
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.engine.rows import column_values
from coder.coderd.store.tables.oauth2 import (
    oauth2_provider_app_codes,
    oauth2_provider_app_made_keys,
    oauth2_provider_app_secrets,
    oauth2_provider_app_tokens,
    oauth2_provider_app_used_refresh_tokens,
    oauth2_provider_apps,
)
from coder.coderd.store.tables.people import api_keys

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement

    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class OAuth2AppRow:
    """Application that may request access from users."""

    id: UUID
    created_at: datetime
    updated_at: datetime
    name: str
    icon: str
    callback_url: str
    redirect_uris: Sequence[str]
    public_client: bool
    registration: Mapping[str, Json] | None
    registration_token_hash: bytes | None
    legacy: bool = False
    """Whether it may omit PKCE: set by an owner for a program without support."""

    @property
    def allowed_redirects(self) -> frozenset[str]:
        return frozenset((self.callback_url, *self.redirect_uris))


@dataclass(frozen=True, slots=True)
class OAuth2SecretRow:
    id: UUID
    app_id: UUID
    created_at: datetime
    last_used_at: datetime | None
    prefix: str
    hashed_secret: bytes
    display_secret: str


@dataclass(frozen=True, slots=True)
class CodeRow:
    """Authorization code: short-lived, used once."""

    prefix: str
    hashed_secret: bytes
    app_id: UUID
    user_id: UUID
    expires_at: datetime
    redirect_uri: str
    code_challenge: str
    scopes: Sequence[str]
    api_key_id: str | None
    """Key with which the user consented, which deletes the code when it is deleted; None for codes from before 0032."""


@dataclass(frozen=True, slots=True)
class TokenRow:
    """Refresh token and the API key that is its access token."""

    prefix: str
    hashed_secret: bytes
    app_id: UUID
    api_key_id: str
    user_id: UUID
    expires_at: datetime
    scopes: Sequence[str]
    grant_id: str
    """Prefix of the code it originated from; kept by renewals."""
    app_secret_id: UUID | None
    """Secret the application authenticated with; None for a public client, and for tokens from before 0023."""


_CONSENTS = 7305  # seed of their advisory locks: distinct from the numbered locks
APPS = tuple(oauth2_provider_apps.c[name] for name in OAuth2AppRow.__slots__)
_SECRETS = tuple(oauth2_provider_app_secrets.c[name] for name in OAuth2SecretRow.__slots__)
_CODES = tuple(oauth2_provider_app_codes.c[name] for name in CodeRow.__slots__)
_TOKENS = tuple(oauth2_provider_app_tokens.c[name] for name in TokenRow.__slots__)


async def list_apps(tx: Tx, user_id: UUID | None) -> list[OAuth2AppRow]:
    """Return applications by name, newest first; with `user_id` only those the user consented to."""
    statement = select(*APPS).order_by(
        oauth2_provider_apps.c.name.collate("C"), oauth2_provider_apps.c.created_at.desc()
    )
    if user_id is not None:
        tokens = oauth2_provider_app_tokens
        statement = statement.where(
            exists().where(tokens.c.app_id == oauth2_provider_apps.c.id, tokens.c.user_id == user_id)
        )
    return [OAuth2AppRow(*row) for row in await tx.execute(statement)]


async def list_last_uses(tx: Tx, user_id: UUID) -> dict[UUID, datetime]:
    """Return, by application, when one of its keys of this user was last used."""
    tokens = oauth2_provider_app_tokens
    statement = (
        select(tokens.c.app_id, func.max(api_keys.c.last_used))
        .join(api_keys, api_keys.c.id == tokens.c.api_key_id)
        .where(tokens.c.user_id == user_id)
        .group_by(tokens.c.app_id)
    )
    return {row[0]: row[1] for row in await tx.execute(statement)}


async def insert_app(tx: Tx, row: OAuth2AppRow, secret: OAuth2SecretRow | None = None) -> None:
    await tx.execute(insert(oauth2_provider_apps).values(column_values(row)))
    if secret is not None:
        await insert_secret(tx, secret)


async def hold_app(tx: Tx, app_id: UUID) -> OAuth2AppRow | None:
    """Return the application's current row, share-locked until the transaction ends: before tokens are issued."""
    return await _get_app(tx, app_id, read=True)


async def lock_app(tx: Tx, app_id: UUID) -> OAuth2AppRow | None:
    """Return the application's current row, locked against issuers until the transaction ends: before it is changed or
    deleted."""
    return await _get_app(tx, app_id, read=False)


async def _get_app(tx: Tx, app_id: UUID, *, read: bool) -> OAuth2AppRow | None:
    statement = select(*APPS).where(oauth2_provider_apps.c.id == app_id).with_for_update(read=read, key_share=read)
    row = (await tx.execute(statement)).one_or_none()
    return None if row is None else OAuth2AppRow(*row)


async def lock_consents(tx: Tx, app_id: UUID, user_id: UUID) -> None:
    """Serialize transactions on the consents of a user to an application."""
    await tx.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"{app_id} {user_id}", _CONSENTS))))


class AppChanges(TypedDict, total=False):
    """Columns of an application that may be set, by name."""

    updated_at: datetime
    name: str
    icon: str
    callback_url: str
    redirect_uris: Sequence[str]
    public_client: bool
    registration: Mapping[str, Json]
    legacy: bool


async def update_app(tx: Tx, app_id: UUID, **values: Unpack[AppChanges]) -> None:
    """Update a row that `lock_app` returned."""
    await tx.execute(update(oauth2_provider_apps).where(oauth2_provider_apps.c.id == app_id).values(**values))


async def delete_app(tx: Tx, app_id: UUID) -> None:
    """Delete it with its secrets, codes and tokens; the users' access tokens for it are deleted, too."""
    await lock_app(tx, app_id)
    await _end_tokens(tx, oauth2_provider_app_tokens.c.app_id == app_id)
    await key_store.revoke_made_keys(tx, oauth2_provider_app_made_keys.c.app_id == app_id)
    await tx.execute(delete(oauth2_provider_apps).where(oauth2_provider_apps.c.id == app_id))


async def _end_tokens(tx: Tx, which: ColumnElement[bool], *, renewed: bool = False) -> None:
    """Delete the matching pairs of tokens: deleting the access tokens deletes the others with them."""
    tokens = oauth2_provider_app_tokens
    await key_store.delete_keys(tx, api_keys.c.id.in_(select(tokens.c.api_key_id).where(which)), renewed=renewed)


async def list_secrets(tx: Tx, app_id: UUID) -> list[OAuth2SecretRow]:
    table = oauth2_provider_app_secrets
    statement = select(*_SECRETS).where(table.c.app_id == app_id).order_by(table.c.created_at)
    return [OAuth2SecretRow(*row) for row in await tx.execute(statement)]


async def insert_secret(tx: Tx, row: OAuth2SecretRow) -> None:
    await tx.execute(insert(oauth2_provider_app_secrets).values(column_values(row)))


async def find_secret(tx: Tx, prefix: str) -> OAuth2SecretRow | None:
    statement = select(*_SECRETS).where(oauth2_provider_app_secrets.c.prefix == prefix)
    row = (await tx.execute(statement)).one_or_none()
    return None if row is None else OAuth2SecretRow(*row)


async def has_secret(tx: Tx, app_id: UUID, secret_id: UUID) -> bool:
    """Return whether the secret still belongs to an application that the transaction holds; it then stays until the
    end."""
    table = oauth2_provider_app_secrets
    statement = select(table.c.id).where(table.c.id == secret_id, table.c.app_id == app_id)
    return (await tx.execute(statement)).first() is not None


async def delete_secret(tx: Tx, app_id: UUID, secret_id: UUID) -> bool:
    """Delete a secret with the tokens of clients that authenticated with it: a secret is deleted because it leaked.

    Tokens without a secret are from before 0023, or of a public client. Those of a confidential client may belong to
    any secret, and are deleted with each.
    """
    tokens, secrets = oauth2_provider_app_tokens, oauth2_provider_app_secrets
    app = await lock_app(tx, app_id)
    if app is None or not await has_secret(tx, app_id, secret_id):
        return False
    nameless = and_(tokens.c.app_id == app_id, tokens.c.app_secret_id.is_(None))
    with_secret = tokens.c.app_secret_id == secret_id
    await _end_tokens(tx, with_secret if app.public_client else or_(with_secret, nameless))
    await tx.execute(delete(secrets).where(secrets.c.id == secret_id))
    return True


async def touch_secret(tx: Tx, secret_id: UUID, now: datetime) -> None:
    table = oauth2_provider_app_secrets
    await tx.execute(update(table).where(table.c.id == secret_id).values(last_used_at=now))


async def insert_code(tx: Tx, row: CodeRow, now: datetime) -> None:
    """Insert a code, replacing the user's earlier codes for the application: only the newest consent counts."""
    table = oauth2_provider_app_codes
    own = and_(table.c.app_id == row.app_id, table.c.user_id == row.user_id)
    is_over = or_(table.c.used_at.is_(None), table.c.expires_at <= now)
    await tx.execute(delete(table).where(own, is_over))
    await tx.execute(insert(table).values(column_values(row)))


async def user_of_code(tx: Tx, prefix: str, hashed_secret: bytes) -> UUID | None:
    """Return the user whose consent it stands for, used or not."""
    table = oauth2_provider_app_codes
    statement = select(table.c.user_id).where(table.c.prefix == prefix, table.c.hashed_secret == hashed_secret)
    return (await tx.execute(statement)).scalar_one_or_none()


async def grant_of_token(tx: Tx, prefix: str, hashed_secret: bytes, app_id: UUID) -> tuple[UUID, str] | None:
    """Return user and grant of a refresh token, used or not."""
    for table in (oauth2_provider_app_tokens, oauth2_provider_app_used_refresh_tokens):
        matches = and_(table.c.prefix == prefix, table.c.hashed_secret == hashed_secret, table.c.app_id == app_id)
        row = (await tx.execute(select(table.c.user_id, table.c.grant_id).where(matches))).one_or_none()
        if row is not None:
            return row[0], row[1]
    return None


async def take_code(tx: Tx, prefix: str, hashed_secret: bytes, now: datetime) -> CodeRow | None:
    """Consume the code: of two concurrent exchanges one gets it.

    The second revokes the result of the first, and so does any later one. Tokens for the code must be issued in the
    same transaction, which has locked the user's consents.
    """
    table = oauth2_provider_app_codes
    matches = and_(table.c.prefix == prefix, table.c.hashed_secret == hashed_secret)
    statement = update(table).where(matches, table.c.used_at.is_(None)).values(used_at=now)
    row = (await tx.execute(statement.returning(*_CODES))).one_or_none()
    if row is not None:
        return CodeRow(*row)
    used = (await tx.execute(select(table.c.app_id, table.c.user_id).where(matches))).one_or_none()
    if used is not None:
        await revoke_grant(tx, used.app_id, used.user_id, prefix)
    return None


async def insert_token(tx: Tx, row: TokenRow) -> None:
    await tx.execute(insert(oauth2_provider_app_tokens).values(column_values(row)))


async def renew_token(tx: Tx, prefix: str, hashed_secret: bytes, app_id: UUID) -> TokenRow | None:
    """Consume the refresh token, which is remembered as used, with its access token.

    A token that was used before has leaked: everything from its consent is revoked (RFC 9700 section 4.14.2). As with
    codes, the new tokens must be issued in the same transaction.
    """
    tokens, table = oauth2_provider_app_tokens, oauth2_provider_app_used_refresh_tokens
    matches = and_(tokens.c.prefix == prefix, tokens.c.hashed_secret == hashed_secret, tokens.c.app_id == app_id)
    row = (await tx.execute(select(*_TOKENS).where(matches))).one_or_none()
    taken = None if row is None else TokenRow(*row)
    # Deletes by the key, as other deletions do: the other order would deadlock.
    if taken is not None and await key_store.delete_key(tx, taken.api_key_id, renewed=True):
        await tx.execute(insert(table).values({name: getattr(taken, name) for name in table.c.keys()}))  # noqa: SIM118
        return taken
    matches = and_(table.c.prefix == prefix, table.c.hashed_secret == hashed_secret, table.c.app_id == app_id)
    used = (await tx.execute(select(table.c.user_id, table.c.grant_id).where(matches))).one_or_none()
    if used is not None:
        await revoke_grant(tx, app_id, used.user_id, used.grant_id)
    return None


async def revoke_grant(tx: Tx, app_id: UUID, user_id: UUID, grant_id: str) -> None:
    """Revoke one consent: its refresh token, its access token, and the keys created with that."""
    await lock_consents(tx, app_id, user_id)
    tokens, made_keys = oauth2_provider_app_tokens, oauth2_provider_app_made_keys
    for table, end in ((tokens, _end_tokens), (made_keys, key_store.revoke_made_keys)):
        await end(tx, and_(table.c.app_id == app_id, table.c.user_id == user_id, table.c.grant_id == grant_id))


async def find_token_of_key(tx: Tx, key_id: str) -> TokenRow | None:
    statement = select(*_TOKENS).where(oauth2_provider_app_tokens.c.api_key_id == key_id)
    row = (await tx.execute(statement)).one_or_none()
    return None if row is None else TokenRow(*row)


_OVER = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class Consent:
    """Consent of a user to one application."""

    app_id: UUID
    user_id: UUID
    grant_id: str
    expires_at: datetime
    """Time at which it expires unless renewed."""


async def consent_of_key(tx: Tx, key_id: str) -> Consent | None:
    """Return the consent behind a key: an application's token, or a key created with one. None for a user's own key."""
    tokens, made_keys = oauth2_provider_app_tokens, oauth2_provider_app_made_keys
    names = ("app_id", "user_id", "grant_id")
    tied = made_keys.outerjoin(tokens, and_(*(tokens.c[name] == made_keys.c[name] for name in names)))
    of_token = select(*(tokens.c[name] for name in names), tokens.c.expires_at).where(tokens.c.api_key_id == key_id)
    of_made = select(*(made_keys.c[name] for name in names), tokens.c.expires_at).select_from(tied)
    statement = union_all(of_token, of_made.where(made_keys.c.api_key_id == key_id)).limit(1)
    row = (await tx.execute(statement)).one_or_none()
    # Without tokens the consent is revoked, and the key should have been deleted with it: it may create nothing.
    return None if row is None else Consent(row[0], row[1], row[2], row[3] or _OVER)


async def hold_consent(tx: Tx, app_id: UUID, user_id: UUID, grant_id: str) -> Consent | None:
    """Return a consent that cannot be revoked until the transaction ends; None if it was revoked.

    The transaction holds the application, its user and the owners of the keys to create.
    """
    await lock_consents(tx, app_id, user_id)
    tokens = oauth2_provider_app_tokens
    own = and_(tokens.c.app_id == app_id, tokens.c.user_id == user_id, tokens.c.grant_id == grant_id)
    row = (await tx.execute(select(tokens.c.api_key_id, tokens.c.expires_at).where(own).limit(1))).one_or_none()
    if row is None or not await key_store.hold_key(tx, row.api_key_id):
        return None
    return Consent(app_id, user_id, grant_id, row.expires_at)


async def insert_made_key(tx: Tx, key_id: str, consent: Consent) -> None:
    """Link a key to the consent it is revoked with. The transaction holds the application, its user and the key that
    created it."""
    values = {"app_id": consent.app_id, "user_id": consent.user_id, "grant_id": consent.grant_id}
    await tx.execute(insert(oauth2_provider_app_made_keys).values(api_key_id=key_id, **values))


async def revoke_keys_of_older_consents(tx: Tx, app_id: UUID, user_id: UUID, grant_id: str) -> None:
    """Revoke the keys the application created under an earlier consent: only the newest counts."""
    made_keys = oauth2_provider_app_made_keys
    own = and_(made_keys.c.app_id == app_id, made_keys.c.user_id == user_id)
    await key_store.revoke_made_keys(tx, and_(own, made_keys.c.grant_id != grant_id))


async def revoke_keys_made_by(tx: Tx, app_id: UUID, user_id: UUID) -> None:
    """Revoke everything the application created with the user's consent."""
    made_keys = oauth2_provider_app_made_keys
    await key_store.revoke_made_keys(tx, and_(made_keys.c.app_id == app_id, made_keys.c.user_id == user_id))


async def delete_tokens_of(tx: Tx, app_id: UUID, user_id: UUID, *, renewed: bool = False) -> None:
    """Delete everything a user has given an application: codes, refresh tokens, access tokens. Used codes are
    remembered.

    Unless they are replaced (`renewed`), codes for other applications are deleted, too: this application's token may
    have consented to them.
    """
    await lock_consents(tx, app_id, user_id)
    tokens, codes = oauth2_provider_app_tokens, oauth2_provider_app_codes
    own = and_(codes.c.app_id == app_id, codes.c.user_id == user_id)
    await tx.execute(delete(codes).where(own, codes.c.used_at.is_(None)))
    await _end_tokens(tx, and_(tokens.c.app_id == app_id, tokens.c.user_id == user_id), renewed=renewed)
    if not renewed:
        await revoke_keys_made_by(tx, app_id, user_id)
