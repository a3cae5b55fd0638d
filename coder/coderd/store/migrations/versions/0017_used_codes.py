"""An authorization code that was used is remembered until it runs out: a second use ends what the first gave."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("oauth2_provider_app_codes", sa.Column("used_at", postgresql.TIMESTAMP(timezone=True), nullable=True))


def downgrade() -> None:
    op.drop_column("oauth2_provider_app_codes", "used_at")
