"""Tables of the OAuth2 provider: applications, their secrets, authorization codes and refresh tokens.

Secrets are stored as hashes with a short prefix for lookups. An access token is an ordinary API key; its row in
`oauth2_provider_app_tokens` names its application and the refresh token that renews it.
"""

from __future__ import annotations

from sqlalchemy import Boolean, CheckConstraint, Column, ForeignKey, Index, Table, Text, text

from coder.coderd.store.engine.metadata import Bytes, Json, TextArray, Timestamp, Uuid, metadata

_APP = "oauth2_provider_apps.id"

oauth2_provider_apps = Table(
    "oauth2_provider_apps",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("name", Text, nullable=False),
    Column("icon", Text, nullable=False, server_default=""),
    Column("callback_url", Text, nullable=False),
    Column("redirect_uris", TextArray, nullable=False, server_default="{}"),
    Column("public_client", Boolean, nullable=False, server_default=text("false")),
    Column("registration", Json),
    Column("registration_token_hash", Bytes),
    # An older program without PKCE; set by an owner.
    Column("legacy", Boolean, nullable=False, server_default=text("false")),
    # Without PKCE only a secret binds the codes to the client.
    CheckConstraint("NOT (legacy AND public_client)", name="legacy_has_secret"),
)
"`registration` (RFC 7591 metadata) and its token's hash exist only where a client registered itself."

oauth2_provider_app_secrets = Table(
    "oauth2_provider_app_secrets",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("app_id", Uuid, ForeignKey(_APP, ondelete="CASCADE"), nullable=False, index=True),
    Column("created_at", Timestamp, nullable=False),
    Column("last_used_at", Timestamp),
    Column("prefix", Text, nullable=False, unique=True),
    Column("hashed_secret", Bytes, nullable=False),
    Column("display_secret", Text, nullable=False),
)

oauth2_provider_app_codes = Table(
    "oauth2_provider_app_codes",
    metadata,
    Column("prefix", Text, primary_key=True),
    Column("hashed_secret", Bytes, nullable=False),
    Column("app_id", Uuid, ForeignKey(_APP, ondelete="CASCADE"), nullable=False),
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("expires_at", Timestamp, nullable=False, index=True),
    Column("redirect_uri", Text, nullable=False),
    Column("code_challenge", Text, nullable=False, server_default=""),
    Column("scopes", TextArray, nullable=False, server_default="{}"),
    Column("used_at", Timestamp),
    Column("api_key_id", Text, index=True),
)
"""`api_key_id` is the key with which its user consented; none for codes from before 0032."""

oauth2_provider_app_tokens = Table(
    "oauth2_provider_app_tokens",
    metadata,
    Column("prefix", Text, primary_key=True),
    Column("hashed_secret", Bytes, nullable=False),
    Column("app_id", Uuid, ForeignKey(_APP, ondelete="CASCADE"), nullable=False, index=True),
    Column("api_key_id", Text, ForeignKey("api_keys.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("expires_at", Timestamp, nullable=False),
    Column("scopes", TextArray, nullable=False, server_default="{}"),
    Column("grant_id", Text, nullable=False, server_default=""),
    Column("app_secret_id", Uuid, ForeignKey("oauth2_provider_app_secrets.id", ondelete="SET NULL"), index=True),
)
"""A row is one refresh token and the API key it renews; `grant_id` is the code it originated from, `app_secret_id` the
secret the application authenticated with."""

oauth2_provider_app_used_refresh_tokens = Table(
    "oauth2_provider_app_used_refresh_tokens",
    metadata,
    Column("prefix", Text, primary_key=True),
    Column("hashed_secret", Bytes, nullable=False),
    Column("app_id", Uuid, ForeignKey(_APP, ondelete="CASCADE"), nullable=False, index=True),
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("grant_id", Text, nullable=False),
    Column("expires_at", Timestamp, nullable=False, index=True),
)
"""Kept for as long as they would have been valid: a reused token was stolen."""

oauth2_provider_app_made_keys = Table(
    "oauth2_provider_app_made_keys",
    metadata,
    Column("api_key_id", Text, ForeignKey("api_keys.id", ondelete="CASCADE"), primary_key=True),
    Column("app_id", Uuid, ForeignKey(_APP, ondelete="CASCADE"), nullable=False),
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("grant_id", Text, nullable=False),
    Index("ix_oauth2_provider_app_made_keys_consent", "app_id", "user_id"),
)
"""Keys an application created with its token, or with one of these, and the consent they end with; `user_id` gave the
consent, and may differ from the key's owner."""
