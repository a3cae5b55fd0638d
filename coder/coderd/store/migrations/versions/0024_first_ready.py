"""Agents remember the end of their first start: one that starts again forgets only the end of its last."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

_AGENTS = "workspace_agents"


def upgrade() -> None:
    op.add_column(_AGENTS, sa.Column("first_ready_at", postgresql.TIMESTAMP(timezone=True)))
    # Nobody wrote down which start it was: one that is under way is taken for a later one.
    op.execute("UPDATE workspace_agents SET first_ready_at = coalesce(ready_at, started_at)")


def downgrade() -> None:
    op.drop_column(_AGENTS, "first_ready_at")
