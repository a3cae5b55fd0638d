"""Plain WireGuard clients, and a notice whenever what they may reach can have changed.

The notice comes from triggers, not from services: a permission is lost in a dozen places, some not written yet, and a
client must be cut off within a second of any of them. They fire per statement and only for the named columns, so the
hot updates (last used, last seen, connection times) cost nothing. Whoever listens asks the policy again.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_TRIGGERS = {
    "wireguard_clients": "INSERT OR UPDATE OR DELETE",
    "users": "UPDATE OF status, deleted, rbac_roles OR DELETE",
    "workspaces": "UPDATE OF deleted, owner_id, organization_id, dormant_at, user_acl, group_acl, latest_build_id",
    "workspace_agents": "INSERT OR UPDATE OF deleted OR DELETE",
    "organization_members": "INSERT OR UPDATE OF roles OR DELETE",
    "group_members": "INSERT OR DELETE",
    "custom_roles": "INSERT OR UPDATE OR DELETE",
}


def upgrade() -> None:
    op.create_table(
        "wireguard_clients",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("user_id", sa.UUID(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("public_key", postgresql.BYTEA(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("expires_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("workspace_ids", postgresql.ARRAY(sa.UUID()), nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_wireguard_clients_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_wireguard_clients")),
        sa.UniqueConstraint("public_key", name=op.f("uq_wireguard_clients_public_key")),
    )
    op.create_index(
        "ix_wireguard_clients_user_id_name",
        "wireguard_clients",
        ["user_id", sa.literal_column("lower(name)")],
        unique=True,
    )
    op.execute(
        """CREATE FUNCTION wireguard_access_changed() RETURNS trigger LANGUAGE plpgsql AS $$
           BEGIN PERFORM pg_notify('wireguard_access', TG_TABLE_NAME); RETURN NULL; END $$"""
    )
    for table, events in _TRIGGERS.items():
        op.execute(
            f"CREATE TRIGGER wireguard_access AFTER {events} ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION wireguard_access_changed()"
        )


def downgrade() -> None:
    for table in _TRIGGERS:
        op.execute(f"DROP TRIGGER wireguard_access ON {table}")
    op.execute("DROP FUNCTION wireguard_access_changed()")
    op.drop_table("wireguard_clients")
