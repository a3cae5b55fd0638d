"""Keys remember which program used them: a person who looks for a lost laptop's session sees a browser and a system."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

_KEYS = "api_keys"


def upgrade() -> None:
    # Of keys that are there nobody knows it; they learn it when they are used again.
    op.add_column(_KEYS, sa.Column("user_agent", sa.Text, nullable=False, server_default=""))


def downgrade() -> None:
    op.drop_column(_KEYS, "user_agent")
