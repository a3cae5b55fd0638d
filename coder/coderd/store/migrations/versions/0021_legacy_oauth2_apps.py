"""Applications that owners let sign in without PKCE."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    legacy = sa.Column("legacy", sa.Boolean(), server_default=sa.text("false"), nullable=False)
    op.add_column("oauth2_provider_apps", legacy)


def downgrade() -> None:
    op.drop_column("oauth2_provider_apps", "legacy")
