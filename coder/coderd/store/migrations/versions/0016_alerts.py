"""What was told already: marks of messages that go out once, and the standing of watched memory and volumes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "notification_marks",
        sa.Column("template_id", sa.UUID(), nullable=False),
        sa.Column("about", sa.UUID(), nullable=False),
        sa.Column("mark", sa.Text(), nullable=False),
        sa.Column("marked_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("template_id", "about", name=op.f("pk_notification_marks")),
    )
    op.create_table(
        "resource_monitors",
        sa.Column("agent_id", sa.UUID(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("quiet_until", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["workspace_agents.id"], name=op.f("fk_resource_monitors_agent_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("agent_id", "path", name=op.f("pk_resource_monitors")),
    )


def downgrade() -> None:
    op.drop_table("resource_monitors")
    op.drop_table("notification_marks")
