"""Builds remember what they were granted: it counts when they have ended well, what was before them until then."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

_BUILDS = "workspace_builds"


def upgrade() -> None:
    op.add_column(_BUILDS, sa.Column("granted_cost", sa.Integer()))
    # Of those that ended nobody asks any more.
    op.execute(
        "UPDATE workspace_builds SET granted_cost = daily_cost "
        "WHERE job_id IN (SELECT id FROM provisioner_jobs WHERE completed_at IS NULL)"
    )


def downgrade() -> None:
    op.drop_column(_BUILDS, "granted_cost")
