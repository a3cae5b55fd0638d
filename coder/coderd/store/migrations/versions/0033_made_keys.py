"""A key that an application made with its token is remembered with the consent it came of, and ends with that.

Keys made before are not known as such: they live until they run out, or somebody deletes them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

_TABLE = "oauth2_provider_app_made_keys"


def upgrade() -> None:
    op.create_table(
        _TABLE,
        sa.Column("api_key_id", sa.Text(), nullable=False),
        sa.Column("app_id", sa.UUID(), nullable=False),
        sa.Column("user_id", sa.UUID(), nullable=False),
        sa.Column("grant_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("api_key_id", name=op.f(f"pk_{_TABLE}")),
        sa.ForeignKeyConstraint(
            ["api_key_id"], ["api_keys.id"], ondelete="CASCADE", name=op.f(f"fk_{_TABLE}_api_key_id")
        ),
        sa.ForeignKeyConstraint(
            ["app_id"], ["oauth2_provider_apps.id"], ondelete="CASCADE", name=op.f(f"fk_{_TABLE}_app_id")
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], ondelete="CASCADE", name=op.f(f"fk_{_TABLE}_user_id")),
    )
    op.create_index(f"ix_{_TABLE}_consent", _TABLE, ["app_id", "user_id"])
    op.create_index(op.f(f"ix_{_TABLE}_user_id"), _TABLE, ["user_id"])


def downgrade() -> None:
    op.drop_table(_TABLE)
