"""A shared port may have an end."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("workspace_port_shares", sa.Column("expires_at", sa.TIMESTAMP(timezone=True)))
    op.create_index(op.f("ix_workspace_port_shares_expires_at"), "workspace_port_shares", ["expires_at"])


def downgrade() -> None:
    op.drop_column("workspace_port_shares", "expires_at")
