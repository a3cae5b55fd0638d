"""Queries of the OAuth2 provider.

Tokens are given and ended by transactions that meet in this order: the application's row, held by givers (`hold_app`)
and locked by whoever ends or changes something of the whole application (`lock_app`); the user's; what is between the
two (`lock_consents`), one transaction after the other. An end looks for what there is to end in a statement after its
lock: so it finds what was given meanwhile, or what it ended is not given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypedDict, Unpack
from uuid import UUID

from sqlalchemy import and_, delete, exists, func, insert, or_, select, union_all, update

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
    """One application that may ask users for access."""

    id: UUID
    created_at: datetime
    updated_at: datetime
    name: str
    icon: str
    callback_url: str
    redirect_uris: Sequence[str]
    public_client: bool
    registration: Mapping[str, Any] | None
    registration_token_hash: bytes | None
    legacy: bool = False
    "May ask without PKCE: an owner says so of a program that does not know it."

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
    """An authorization code: short-lived, used once."""

    prefix: str
    hashed_secret: bytes
    app_id: UUID
    user_id: UUID
    expires_at: datetime
    redirect_uri: str
    code_challenge: str
    scopes: Sequence[str]
    api_key_id: str | None
    "The key its user agreed with, which takes it along when it ends; None for codes given before 0032."


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A refresh token and the API key that is its access token."""

    prefix: str
    hashed_secret: bytes
    app_id: UUID
    api_key_id: str
    user_id: UUID
    expires_at: datetime
    scopes: Sequence[str]
    grant_id: str
    "The prefix of the code it all began with; what is renewed keeps it."
    app_secret_id: UUID | None
    "The secret the application proved itself by; None for a public client, and for tokens given before 0023."


_CONSENTS = 7305  # the seed of their advisory locks: apart from the locks that are numbers
_APPS = tuple(oauth2_provider_apps.c[name] for name in OAuth2AppRow.__slots__)
_SECRETS = tuple(oauth2_provider_app_secrets.c[name] for name in OAuth2SecretRow.__slots__)
_CODES = tuple(oauth2_provider_app_codes.c[name] for name in CodeRow.__slots__)
_TOKENS = tuple(oauth2_provider_app_tokens.c[name] for name in TokenRow.__slots__)


async def list_apps(tx: Tx, user_id: UUID | None) -> list[OAuth2AppRow]:
    """By name, newest first; with `user_id` only those the user has let in."""
    statement = select(*_APPS).order_by(
        oauth2_provider_apps.c.name.collate("C"), oauth2_provider_apps.c.created_at.desc()
    )
    if user_id is not None:
        tokens = oauth2_provider_app_tokens
        statement = statement.where(
            exists().where(tokens.c.app_id == oauth2_provider_apps.c.id, tokens.c.user_id == user_id)
        )
    return [OAuth2AppRow(*row) for row in await tx.execute(statement)]


async def get_app(tx: Tx, app_id: UUID) -> OAuth2AppRow | None:
    row = (await tx.execute(select(*_APPS).where(oauth2_provider_apps.c.id == app_id))).one_or_none()
    return None if row is None else OAuth2AppRow(*row)


async def insert_app(tx: Tx, row: OAuth2AppRow, secret: OAuth2SecretRow | None = None) -> None:
    await tx.execute(insert(oauth2_provider_apps).values(column_values(row)))
    if secret is not None:
        await insert_secret(tx, secret)


async def hold_app(tx: Tx, app_id: UUID) -> OAuth2AppRow | None:
    """As it is now, and until the transaction ends, but for those who hold it, too: before anything is given."""
    return await _get_app(tx, app_id, read=True)


async def lock_app(tx: Tx, app_id: UUID) -> OAuth2AppRow | None:
    """As it is now, and nobody gives anything for it until the transaction ends: before it is changed, or ended."""
    return await _get_app(tx, app_id, read=False)


async def _get_app(tx: Tx, app_id: UUID, *, read: bool) -> OAuth2AppRow | None:
    statement = select(*_APPS).where(oauth2_provider_apps.c.id == app_id).with_for_update(read=read, key_share=read)
    row = (await tx.execute(statement)).one_or_none()
    return None if row is None else OAuth2AppRow(*row)


async def lock_consents(tx: Tx, app_id: UUID, user_id: UUID) -> None:
    """What is between an application and a user goes on in one transaction at a time."""
    await tx.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"{app_id} {user_id}", _CONSENTS))))


class AppChanges(TypedDict, total=False):
    """Columns of an application that may be set, by name."""

    updated_at: datetime
    name: str
    icon: str
    callback_url: str
    redirect_uris: Sequence[str]
    public_client: bool
    registration: Mapping[str, Any]
    legacy: bool


async def update_app(tx: Tx, app_id: UUID, **values: Unpack[AppChanges]) -> None:
    """Of a row that `lock_app` gave."""
    await tx.execute(update(oauth2_provider_apps).where(oauth2_provider_apps.c.id == app_id).values(**values))


async def delete_app(tx: Tx, app_id: UUID) -> None:
    """With its secrets, codes and tokens; the users' access tokens for it end, too."""
    await lock_app(tx, app_id)
    await _end_tokens(tx, oauth2_provider_app_tokens.c.app_id == app_id)
    await key_store.end_made_keys(tx, oauth2_provider_app_made_keys.c.app_id == app_id)
    await tx.execute(delete(oauth2_provider_apps).where(oauth2_provider_apps.c.id == app_id))


async def _end_tokens(tx: Tx, which: ColumnElement[bool], *, renewed: bool = False) -> None:
    """Ends the pairs of tokens the condition selects: what goes are the access tokens, and the others with them."""
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
    """Whether it still is one of an application that the transaction holds: it stays so."""
    table = oauth2_provider_app_secrets
    statement = select(table.c.id).where(table.c.id == secret_id, table.c.app_id == app_id)
    return (await tx.execute(statement)).first() is not None


async def delete_secret(tx: Tx, app_id: UUID, secret_id: UUID) -> bool:
    """With what was given to whoever proved itself by it: a secret is taken away because somebody else has it.

    Tokens that name no secret are of before 0023, or of a public client. Those of a client that is not public may have
    been given for any secret, and end with each.
    """
    tokens, secrets = oauth2_provider_app_tokens, oauth2_provider_app_secrets
    app = await lock_app(tx, app_id)
    if app is None or not await has_secret(tx, app_id, secret_id):
        return False
    nameless = and_(tokens.c.app_id == app_id, tokens.c.app_secret_id.is_(None))
    given = tokens.c.app_secret_id == secret_id
    await _end_tokens(tx, given if app.public_client else or_(given, nameless))
    await tx.execute(delete(secrets).where(secrets.c.id == secret_id))
    return True


async def touch_secret(tx: Tx, secret_id: UUID, now: datetime) -> None:
    table = oauth2_provider_app_secrets
    await tx.execute(update(table).where(table.c.id == secret_id).values(last_used_at=now))


async def insert_code(tx: Tx, row: CodeRow, now: datetime) -> None:
    """Replaces the user's earlier codes for the application: only the newest consent counts."""
    table = oauth2_provider_app_codes
    mine = and_(table.c.app_id == row.app_id, table.c.user_id == row.user_id)
    is_over = or_(table.c.used_at.is_(None), table.c.expires_at <= now)
    await tx.execute(delete(table).where(mine, is_over))
    await tx.execute(insert(table).values(column_values(row)))


async def user_of_code(tx: Tx, prefix: str, hashed_secret: bytes) -> UUID | None:
    """Whose consent it stands for, used or not."""
    table = oauth2_provider_app_codes
    statement = select(table.c.user_id).where(table.c.prefix == prefix, table.c.hashed_secret == hashed_secret)
    return (await tx.execute(statement)).scalar_one_or_none()


async def grant_of_token(tx: Tx, prefix: str, hashed_secret: bytes, app_id: UUID) -> tuple[UUID, str] | None:
    """Whose consent a refresh token stands for and which, used or not."""
    for table in (oauth2_provider_app_tokens, oauth2_provider_app_used_refresh_tokens):
        is_it = and_(table.c.prefix == prefix, table.c.hashed_secret == hashed_secret, table.c.app_id == app_id)
        row = (await tx.execute(select(table.c.user_id, table.c.grant_id).where(is_it))).one_or_none()
        if row is not None:
            return row[0], row[1]
    return None


async def take_code(tx: Tx, prefix: str, hashed_secret: bytes, now: datetime) -> CodeRow | None:
    """The code, which is used up afterwards: of two exchanges at once one gets it.

    The second ends what the first gave, and so does any later one. What is given for it belongs into the same
    transaction, which has locked the user's consents.
    """
    table = oauth2_provider_app_codes
    is_it = and_(table.c.prefix == prefix, table.c.hashed_secret == hashed_secret)
    statement = update(table).where(is_it, table.c.used_at.is_(None)).values(used_at=now)
    row = (await tx.execute(statement.returning(*_CODES))).one_or_none()
    if row is not None:
        return CodeRow(*row)
    used = (await tx.execute(select(table.c.app_id, table.c.user_id).where(is_it))).one_or_none()
    if used is not None:
        await end_grant(tx, used.app_id, used.user_id, prefix)
    return None


async def insert_token(tx: Tx, row: TokenRow) -> None:
    await tx.execute(insert(oauth2_provider_app_tokens).values(column_values(row)))


async def renew_token(tx: Tx, prefix: str, hashed_secret: bytes, app_id: UUID) -> TokenRow | None:
    """The refresh token, which is remembered as used and gone afterwards, its access token with it.

    One that was used before has been seen by somebody it was not for: everything its consent gave ends (RFC 9700
    section 4.14.2). As with codes, what is given for it belongs into the transaction.
    """
    tokens, table = oauth2_provider_app_tokens, oauth2_provider_app_used_refresh_tokens
    is_it = and_(tokens.c.prefix == prefix, tokens.c.hashed_secret == hashed_secret, tokens.c.app_id == app_id)
    row = (await tx.execute(select(*_TOKENS).where(is_it))).one_or_none()
    taken = None if row is None else TokenRow(*row)
    # By its key, as whoever deletes that does: the other way round two would wait for each other.
    if taken is not None and await key_store.delete_key(tx, taken.api_key_id, renewed=True):
        await tx.execute(insert(table).values({name: getattr(taken, name) for name in table.c.keys()}))  # noqa: SIM118
        return taken
    is_it = and_(table.c.prefix == prefix, table.c.hashed_secret == hashed_secret, table.c.app_id == app_id)
    used = (await tx.execute(select(table.c.user_id, table.c.grant_id).where(is_it))).one_or_none()
    if used is not None:
        await end_grant(tx, app_id, used.user_id, used.grant_id)
    return None


async def end_grant(tx: Tx, app_id: UUID, user_id: UUID, grant_id: str) -> None:
    """What came of one consent: its refresh token, its access token, and the keys made with that."""
    await lock_consents(tx, app_id, user_id)
    tokens, made = oauth2_provider_app_tokens, oauth2_provider_app_made_keys
    for table, end in ((tokens, _end_tokens), (made, key_store.end_made_keys)):
        await end(tx, and_(table.c.app_id == app_id, table.c.user_id == user_id, table.c.grant_id == grant_id))


async def find_token_of_key(tx: Tx, key_id: str) -> TokenRow | None:
    statement = select(*_TOKENS).where(oauth2_provider_app_tokens.c.api_key_id == key_id)
    row = (await tx.execute(statement)).one_or_none()
    return None if row is None else TokenRow(*row)


_OVER = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class Consent:
    """What a person agreed to with one application."""

    app_id: UUID
    user_id: UUID
    grant_id: str
    expires_at: datetime
    "When it is over unless it is renewed."


async def consent_of_key(tx: Tx, key_id: str) -> Consent | None:
    """The consent a key came of: an application's token, or what was made with one. None for a person's own key."""
    tokens, made = oauth2_provider_app_tokens, oauth2_provider_app_made_keys
    names = ("app_id", "user_id", "grant_id")
    tied = made.outerjoin(tokens, and_(*(tokens.c[name] == made.c[name] for name in names)))
    of_token = select(*(tokens.c[name] for name in names), tokens.c.expires_at).where(tokens.c.api_key_id == key_id)
    of_made = select(*(made.c[name] for name in names), tokens.c.expires_at).select_from(tied)
    statement = union_all(of_token, of_made.where(made.c.api_key_id == key_id)).limit(1)
    row = (await tx.execute(statement)).one_or_none()
    # Without tokens there is no consent any more, and the key should have gone with it: it may do nothing new.
    return None if row is None else Consent(row[0], row[1], row[2], row[3] or _OVER)


async def insert_made_key(tx: Tx, key_id: str, consent: Consent) -> None:
    """Ties a key to the consent it ends with. The transaction holds the application, its user and the key it was made
    with."""
    values = {"app_id": consent.app_id, "user_id": consent.user_id, "grant_id": consent.grant_id}
    await tx.execute(insert(oauth2_provider_app_made_keys).values(api_key_id=key_id, **values))


async def end_made_of_others(tx: Tx, app_id: UUID, user_id: UUID, grant_id: str) -> None:
    """Only the newest consent counts: ends what the application made by an earlier one."""
    made = oauth2_provider_app_made_keys
    mine = and_(made.c.app_id == app_id, made.c.user_id == user_id)
    await key_store.end_made_keys(tx, and_(mine, made.c.grant_id != grant_id))


async def end_made_by(tx: Tx, app_id: UUID, user_id: UUID) -> None:
    """All the application made with what the user gave it."""
    made = oauth2_provider_app_made_keys
    await key_store.end_made_keys(tx, and_(made.c.app_id == app_id, made.c.user_id == user_id))


async def delete_tokens_of(tx: Tx, app_id: UUID, user_id: UUID, *, renewed: bool = False) -> None:
    """Everything a user has given an application: codes, refresh tokens, access tokens. Used codes are remembered.

    Unless others are given in their place (`renewed`), codes for other applications end, too: it may have been this
    one's token that agreed to them.
    """
    await lock_consents(tx, app_id, user_id)
    tokens, codes = oauth2_provider_app_tokens, oauth2_provider_app_codes
    mine = and_(codes.c.app_id == app_id, codes.c.user_id == user_id)
    await tx.execute(delete(codes).where(mine, codes.c.used_at.is_(None)))
    await _end_tokens(tx, and_(tokens.c.app_id == app_id, tokens.c.user_id == user_id), renewed=renewed)
    if not renewed:
        await end_made_by(tx, app_id, user_id)
