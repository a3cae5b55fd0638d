"""Tokens of OAuth2 applications say which secret they were given for; what is over is found by when it ends."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

_TOKENS = "oauth2_provider_app_tokens"
_ENDING = ("oauth2_provider_app_codes", "oauth2_provider_app_used_refresh_tokens")


def upgrade() -> None:
    # Tokens of before have none: nobody wrote down which of an application's secrets they were given for.
    op.add_column(_TOKENS, sa.Column("app_secret_id", sa.UUID()))
    op.create_foreign_key(
        op.f(f"fk_{_TOKENS}_app_secret_id"),
        _TOKENS,
        "oauth2_provider_app_secrets",
        ["app_secret_id"],
        ["id"],
        ondelete="SET NULL",
    )
    op.create_index(op.f(f"ix_{_TOKENS}_app_secret_id"), _TOKENS, ["app_secret_id"])
    for table in _ENDING:
        op.create_index(op.f(f"ix_{table}_expires_at"), table, ["expires_at"])


def downgrade() -> None:
    for table in _ENDING:
        op.drop_index(op.f(f"ix_{table}_expires_at"), table)
    op.drop_column(_TOKENS, "app_secret_id")
