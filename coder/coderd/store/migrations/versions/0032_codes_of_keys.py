"""An authorization code names the key its user agreed with: it ends with that key, and with no other."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

_TABLE = "oauth2_provider_app_codes"


def upgrade() -> None:
    op.add_column(_TABLE, sa.Column("api_key_id", sa.Text()))
    op.create_index(op.f(f"ix_{_TABLE}_api_key_id"), _TABLE, ["api_key_id"])


def downgrade() -> None:
    op.drop_column(_TABLE, "api_key_id")
