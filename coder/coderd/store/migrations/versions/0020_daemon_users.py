"""Whose session a provisioner daemon came with: two users' daemons of one name are two."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("provisioner_daemons", sa.Column("user_id", sa.UUID(), nullable=True))
    op.create_foreign_key(
        op.f("fk_provisioner_daemons_user_id"), "provisioner_daemons", "users", ["user_id"], ["id"], ondelete="SET NULL"
    )
    # Those that serve their owner only say who that is. Nobody knows it of the others: who comes back first has it.
    op.execute(
        "UPDATE provisioner_daemons SET user_id = users.id FROM users "
        "WHERE tags ->> 'scope' = 'user' AND tags ->> 'owner' = users.id::text"
    )


def downgrade() -> None:
    op.drop_constraint(op.f("fk_provisioner_daemons_user_id"), "provisioner_daemons", type_="foreignkey")
    op.drop_column("provisioner_daemons", "user_id")
