"""Use of applications, processes of workspace proxies, and a number for each proxy's relay region."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def _time(name: str) -> sa.Column[object]:
    return sa.Column(name, postgresql.TIMESTAMP(timezone=True), nullable=False)


def upgrade() -> None:
    op.create_table(
        "workspace_app_stats",
        sa.Column("session_id", sa.UUID(), nullable=False),
        sa.Column("user_id", sa.UUID(), nullable=False),
        sa.Column("workspace_id", sa.UUID(), nullable=False),
        sa.Column("template_id", sa.UUID(), nullable=False),
        sa.Column("agent_id", sa.UUID(), nullable=False),
        sa.Column("access_method", sa.Text(), nullable=False),
        sa.Column("slug_or_port", sa.Text(), nullable=False),
        _time("session_started_at"),
        _time("session_ended_at"),
        sa.Column("requests", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_workspace_app_stats_workspace_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["workspace_agents.id"], name=op.f("fk_workspace_app_stats_agent_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("session_id", name=op.f("pk_workspace_app_stats")),
    )
    op.create_index("ix_workspace_app_stats_session_ended_at", "workspace_app_stats", ["session_ended_at"])
    op.create_table(
        "workspace_proxy_replicas",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("proxy_id", sa.UUID(), nullable=False),
        *(
            sa.Column(name, sa.Text(), server_default="", nullable=False)
            for name in ("hostname", "relay_address", "error", "version")
        ),
        _time("created_at"),
        _time("updated_at"),
        sa.ForeignKeyConstraint(
            ["proxy_id"],
            ["workspace_proxies.id"],
            name=op.f("fk_workspace_proxy_replicas_proxy_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspace_proxy_replicas")),
    )
    op.create_index("ix_workspace_proxy_replicas_proxy_id", "workspace_proxy_replicas", ["proxy_id"])
    op.add_column("workspace_proxies", sa.Column("region_id", sa.Integer(), sa.Identity(), nullable=False))


def downgrade() -> None:
    op.drop_column("workspace_proxies", "region_id")
    op.drop_table("workspace_proxy_replicas")
    op.drop_table("workspace_app_stats")
