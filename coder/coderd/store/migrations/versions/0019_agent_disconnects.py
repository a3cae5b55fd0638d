"""When agents were away and why, and the last readings of their machines and of the way to them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_TIME = postgresql.TIMESTAMP(timezone=True)


def upgrade() -> None:
    for name, kind in (
        ("host_vitals", postgresql.JSONB()),
        ("host_vitals_at", _TIME),
        ("path_vitals", postgresql.JSONB()),
        ("path_vitals_at", _TIME),
    ):
        op.add_column("workspace_agents", sa.Column(name, kind, nullable=True))
    op.create_table(
        "workspace_agent_disconnects",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("workspace_id", sa.UUID(), nullable=False),
        sa.Column("agent_name", sa.Text(), nullable=False),
        sa.Column("disconnected_at", _TIME, nullable=False),
        sa.Column("ended", sa.Text(), nullable=False),
        sa.Column("returned_at", _TIME, nullable=True),
        sa.Column("told_at", _TIME, nullable=True),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), server_default="", nullable=False),
        sa.Column("events", postgresql.JSONB(), server_default=sa.text("'[]'::jsonb"), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspaces.id"],
            name=op.f("fk_workspace_agent_disconnects_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspace_agent_disconnects")),
    )
    op.create_index(
        "ix_workspace_agent_disconnects_agent",
        "workspace_agent_disconnects",
        ["workspace_id", "agent_name", "disconnected_at"],
    )


def downgrade() -> None:
    op.drop_table("workspace_agent_disconnects")
    for name in ("path_vitals_at", "path_vitals", "host_vitals_at", "host_vitals"):
        op.drop_column("workspace_agents", name)
