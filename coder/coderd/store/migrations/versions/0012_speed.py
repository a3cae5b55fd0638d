"""Notices of changes to identities, so that processes may remember who a key belongs to; the table of replicas."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_FUNCTION = """
CREATE FUNCTION tell_identity_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('identity_changed', '');
    RETURN NULL;
END $$
"""
_USER = "email, username, name, avatar_url, status, login_type, rbac_roles, deleted, is_service_account"
_KEY = "user_id, hashed_secret, expires_at, lifetime_seconds, scopes, allow_list"
# last_used and last_seen_at are left out: every request may move them. New users and keys are unknown to everybody.
_EVENTS = {
    "users": f"UPDATE OF {_USER} OR DELETE",
    "api_keys": f"UPDATE OF {_KEY} OR DELETE",
    "organizations": "UPDATE OR DELETE",
    "organization_members": "INSERT OR UPDATE OR DELETE",
    "group_members": "INSERT OR UPDATE OR DELETE",
    "custom_roles": "INSERT OR UPDATE OR DELETE",
}


def upgrade() -> None:
    """The function, a trigger for each table, and the table of replicas."""
    op.create_table(
        "replicas",
        sa.Column("id", postgresql.UUID(), primary_key=True),
        sa.Column("hostname", sa.Text(), nullable=False),
        sa.Column("region_id", sa.Integer(), nullable=False),
        sa.Column("relay_address", sa.Text(), nullable=False, server_default=""),
        sa.Column("database_latency_us", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("version", sa.Text(), nullable=False, server_default=""),
        sa.Column("error", sa.Text(), nullable=False, server_default=""),
    )
    op.execute(_FUNCTION)
    for table, events in _EVENTS.items():
        op.execute(
            f"CREATE TRIGGER {table}_tell_identity_changed AFTER {events} ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION tell_identity_changed()"
        )


def downgrade() -> None:
    """Without them."""
    for table in _EVENTS:
        op.execute(f"DROP TRIGGER {table}_tell_identity_changed ON {table}")
    op.execute("DROP FUNCTION tell_identity_changed()")
    op.drop_table("replicas")
