"""Who announced a node's public keys first: a second owner of a key is refused, at every replica."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "node_keys",
        sa.Column("key", postgresql.BYTEA(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("seen_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_node_keys")),
    )
    op.create_index("ix_node_keys_owner_seen_at", "node_keys", ["owner", "seen_at"])


def downgrade() -> None:
    op.drop_table("node_keys")
