"""What the audit log knows of each plain WireGuard client: a loss is told once, by whichever replica is first.

A table of its own, without the triggers of `wireguard_clients`: what is written here changes nobody's reach. Clients
that are there already begin as they stand; what they lost before was never told and is not told late.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "wireguard_reach",
        sa.Column("client_id", sa.UUID(), nullable=False),
        sa.Column("standing", sa.Text(), nullable=False),
        sa.Column("workspaces", postgresql.ARRAY(sa.UUID()), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["client_id"], ["wireguard_clients.id"], name=op.f("fk_wireguard_reach_client_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("client_id", name=op.f("pk_wireguard_reach")),
    )
    op.execute(
        """INSERT INTO wireguard_reach (client_id, standing, workspaces, revision)
           SELECT c.id,
                  CASE WHEN u.deleted THEN 'owner_deleted' WHEN u.status = 'suspended' THEN 'owner_suspended'
                       WHEN c.expires_at <= now() THEN 'expired' ELSE 'active' END,
                  '{}', 0
           FROM wireguard_clients c JOIN users u ON u.id = c.user_id"""
    )


def downgrade() -> None:
    op.drop_table("wireguard_reach")
