"""Agents and provisioner daemons remember which link they are here by: the end of an older one sends nobody off.

Whoever is connected while this runs has none yet, and gets one with its next sign of life.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None

_TABLES = ("provisioner_daemons", "workspace_agents")


def upgrade() -> None:
    for table in _TABLES:
        op.add_column(table, sa.Column("link_id", sa.UUID()))


def downgrade() -> None:
    for table in _TABLES:
        op.drop_column(table, "link_id")
