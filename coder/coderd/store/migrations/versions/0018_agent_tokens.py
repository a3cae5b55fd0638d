"""Tokens of external agents that somebody rotated: they stand in for the one the template gave, over rebuilds too."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "workspace_agent_tokens",
        sa.Column("token", sa.UUID(), nullable=False),
        sa.Column("workspace_id", sa.UUID(), nullable=False),
        sa.Column("agent_name", sa.Text(), nullable=False),
        sa.Column("template_token", sa.UUID(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("used_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_workspace_agent_tokens_workspace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("token", name=op.f("pk_workspace_agent_tokens")),
        sa.UniqueConstraint(
            "workspace_id",
            "agent_name",
            "template_token",
            "generation",
            name=op.f("uq_workspace_agent_tokens_generation"),
        ),
    )


def downgrade() -> None:
    op.drop_table("workspace_agent_tokens")
