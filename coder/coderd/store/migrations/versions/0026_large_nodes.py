"""Nodes that are too large for a NOTIFY: other replicas read them here."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "large_nodes",
        sa.Column("peer_id", sa.UUID(), nullable=False),
        sa.Column("node", postgresql.BYTEA(), nullable=False),
        sa.Column("told_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("peer_id", name=op.f("pk_large_nodes")),
    )


def downgrade() -> None:
    op.drop_table("large_nodes")
