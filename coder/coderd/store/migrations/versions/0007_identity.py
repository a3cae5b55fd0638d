"""Tables of the OAuth2 provider and of links to external providers."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Boolean, Column, ForeignKey, Text, text
from sqlalchemy.dialects.postgresql import ARRAY, BYTEA, JSONB, TIMESTAMP, UUID

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_UUID = UUID(as_uuid=True)
_TIME = TIMESTAMP(timezone=True)
_TEXTS = ARRAY(Text)


def upgrade() -> None:
    """Empty tables."""
    op.create_table(
        "oauth2_provider_apps",
        Column("id", _UUID, primary_key=True),
        Column("created_at", _TIME, nullable=False),
        Column("updated_at", _TIME, nullable=False),
        Column("name", Text, nullable=False),
        Column("icon", Text, nullable=False, server_default=""),
        Column("callback_url", Text, nullable=False),
        Column("redirect_uris", _TEXTS, nullable=False, server_default="{}"),
        Column("public_client", Boolean, nullable=False, server_default=text("false")),
        Column("registration", JSONB),
        Column("registration_token_hash", BYTEA),
    )
    _create_secrets()
    _create_codes()
    _create_tokens()
    _create_links()


def _references(table: str, column: str, target: str, kind: object = _UUID) -> Column[object]:
    key = ForeignKey(target, ondelete="CASCADE", name=f"fk_{table}_{column}")
    return Column(column, kind, key, nullable=False)  # type: ignore[call-overload,no-any-return]


def _create_secrets() -> None:
    table = "oauth2_provider_app_secrets"
    op.create_table(
        table,
        Column("id", _UUID, primary_key=True),
        _references(table, "app_id", "oauth2_provider_apps.id"),
        Column("created_at", _TIME, nullable=False),
        Column("last_used_at", _TIME),
        Column("prefix", Text, nullable=False, unique=True),
        Column("hashed_secret", BYTEA, nullable=False),
        Column("display_secret", Text, nullable=False),
    )
    op.create_index(f"ix_{table}_app_id", table, ["app_id"])


def _create_codes() -> None:
    table = "oauth2_provider_app_codes"
    op.create_table(
        table,
        Column("prefix", Text, primary_key=True),
        Column("hashed_secret", BYTEA, nullable=False),
        _references(table, "app_id", "oauth2_provider_apps.id"),
        _references(table, "user_id", "users.id"),
        Column("expires_at", _TIME, nullable=False),
        Column("redirect_uri", Text, nullable=False),
        Column("code_challenge", Text, nullable=False, server_default=""),
        Column("scopes", _TEXTS, nullable=False, server_default="{}"),
    )


def _create_tokens() -> None:
    table = "oauth2_provider_app_tokens"
    op.create_table(
        table,
        Column("prefix", Text, primary_key=True),
        Column("hashed_secret", BYTEA, nullable=False),
        _references(table, "app_id", "oauth2_provider_apps.id"),
        _references(table, "api_key_id", "api_keys.id", Text),
        _references(table, "user_id", "users.id"),
        Column("expires_at", _TIME, nullable=False),
        Column("scopes", _TEXTS, nullable=False, server_default="{}"),
    )
    for column in ("app_id", "api_key_id", "user_id"):
        op.create_index(f"ix_{table}_{column}", table, [column])


def _create_links() -> None:
    table = "external_auth_links"
    user = ForeignKey("users.id", ondelete="CASCADE", name=f"fk_{table}_user_id")
    op.create_table(
        table,
        Column("provider_id", Text, primary_key=True),
        Column("user_id", _UUID, user, primary_key=True),
        Column("created_at", _TIME, nullable=False),
        Column("updated_at", _TIME, nullable=False),
        Column("access_token", Text, nullable=False),
        Column("refresh_token", Text, nullable=False, server_default=""),
        Column("expires_at", _TIME),
        Column("extra", JSONB),
    )


def downgrade() -> None:
    """Forgets all applications and links."""
    op.drop_table("external_auth_links")
    for name in ("tokens", "codes", "secrets"):
        op.drop_table(f"oauth2_provider_app_{name}")
    op.drop_table("oauth2_provider_apps")
