"""Staged rollouts of template versions.

Servers of the previous version ignore the table: they offer the active version to all workspaces, as before. A
promotion or deletion by such a server leaves a rollout open; the watcher ends it after the upgrade.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

_TABLE = "template_rollouts"
_TIME = sa.TIMESTAMP(timezone=True)


def upgrade() -> None:
    """Create the table; at most one rollout of a template is running or stopped."""
    op.create_table(
        _TABLE,
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("template_id", sa.UUID(), nullable=False),
        sa.Column("template_version_id", sa.UUID(), nullable=False),
        sa.Column("former_version_id", sa.UUID(), nullable=False),
        sa.Column("group_id", sa.UUID()),
        sa.Column("stages", JSONB(), nullable=False),
        sa.Column("percent", sa.SmallInteger(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False, server_default=""),
        sa.Column("failure_percent", sa.SmallInteger(), nullable=False),
        sa.Column("minimum_builds", sa.Integer(), nullable=False),
        sa.Column("created_by", sa.UUID(), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("updated_at", _TIME, nullable=False),
        sa.Column("stage_started_at", _TIME, nullable=False),
        sa.Column("ended_at", _TIME),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{_TABLE}")),
        sa.ForeignKeyConstraint(
            ["template_id"], ["templates.id"], ondelete="CASCADE", name=op.f(f"fk_{_TABLE}_template_id")
        ),
        sa.ForeignKeyConstraint(
            ["template_version_id"],
            ["template_versions.id"],
            ondelete="CASCADE",
            name=op.f(f"fk_{_TABLE}_template_version_id"),
        ),
        sa.ForeignKeyConstraint(["group_id"], ["groups.id"], ondelete="SET NULL", name=op.f(f"fk_{_TABLE}_group_id")),
        sa.ForeignKeyConstraint(["created_by"], ["users.id"], name=op.f(f"fk_{_TABLE}_created_by")),
    )
    op.create_index(op.f(f"ix_{_TABLE}_template_id_created_at"), _TABLE, ["template_id", "created_at"])
    op.create_index(
        f"ix_{_TABLE}_open",
        _TABLE,
        ["template_id"],
        unique=True,
        postgresql_where=sa.text("status IN ('running', 'stopped')"),
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table(_TABLE)
