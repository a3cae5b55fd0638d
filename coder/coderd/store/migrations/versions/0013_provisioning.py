"""What was measured of provisioner daemons over the mesh."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "provisioner_daemon_health",
        sa.Column("daemon_id", sa.UUID(), nullable=False),
        sa.Column("measured_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("answered_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("unreachable_since", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("latency", sa.Float(), nullable=True),
        sa.Column("problem", sa.Text(), server_default="", nullable=False),
        sa.Column("report", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.ForeignKeyConstraint(
            ["daemon_id"],
            ["provisioner_daemons.id"],
            name=op.f("fk_provisioner_daemon_health_daemon_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("daemon_id", name=op.f("pk_provisioner_daemon_health")),
    )


def downgrade() -> None:
    op.drop_table("provisioner_daemon_health")
