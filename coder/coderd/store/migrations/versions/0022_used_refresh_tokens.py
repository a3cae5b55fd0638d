"""Refresh tokens that were used, and the consent each came from: one that comes again ends what that consent gave."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

_TABLE = "oauth2_provider_app_used_refresh_tokens"


def upgrade() -> None:
    # Tokens of before have none: all a user gave one application counts as one consent, and only the last is kept.
    grant = sa.Column("grant_id", sa.Text(), server_default="", nullable=False)
    op.add_column("oauth2_provider_app_tokens", grant)
    op.create_table(
        _TABLE,
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("hashed_secret", sa.LargeBinary(), nullable=False),
        sa.Column("app_id", sa.UUID(), nullable=False),
        sa.Column("user_id", sa.UUID(), nullable=False),
        sa.Column("grant_id", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["app_id"], ["oauth2_provider_apps.id"], name=op.f(f"fk_{_TABLE}_app_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f(f"fk_{_TABLE}_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("prefix", name=op.f(f"pk_{_TABLE}")),
    )
    for column in ("app_id", "user_id"):
        op.create_index(op.f(f"ix_{_TABLE}_{column}"), _TABLE, [column])


def downgrade() -> None:
    op.drop_table(_TABLE)
    op.drop_column("oauth2_provider_app_tokens", "grant_id")
