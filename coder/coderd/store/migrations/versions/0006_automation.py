"""Tables for audit, connections, notifications and the history of users' statuses."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Identity, Integer, Text, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TIMESTAMP, UUID

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_UUID = UUID(as_uuid=True)
_TIME = TIMESTAMP(timezone=True)
_EMPTY = text("'{}'::jsonb")
_TABLES = (
    "user_status_changes",
    "notification_methods",
    "notification_preferences",
    "notification_messages",
    "connection_logs",
    "audit_logs",
)
_RECORD_STATUS = """
CREATE FUNCTION record_user_status() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.is_system THEN
        RETURN NEW;
    ELSIF TG_OP = 'INSERT' THEN
        INSERT INTO user_status_changes (user_id, status, changed_at) VALUES (NEW.id, NEW.status, NEW.created_at);
    ELSIF NEW.deleted AND NOT OLD.deleted THEN
        INSERT INTO user_status_changes (user_id, status, changed_at) VALUES (NEW.id, 'deleted', NEW.updated_at);
    ELSIF NEW.status <> OLD.status THEN
        INSERT INTO user_status_changes (user_id, status, changed_at)
            VALUES (NEW.id, NEW.status, GREATEST(NEW.updated_at, NEW.last_seen_at));
    END IF;
    RETURN NEW;
END $$
"""


def upgrade() -> None:
    """Logs, messages and history, all empty but the statuses users have today."""
    _logs()
    _notifications()
    op.create_table(
        "user_status_changes",
        Column("id", BigInteger, Identity(), primary_key=True),
        Column(
            "user_id",
            _UUID,
            ForeignKey("users.id", ondelete="CASCADE", name="fk_user_status_changes_user_id"),
            nullable=False,
        ),
        Column("status", Text, nullable=False),
        Column("changed_at", _TIME, nullable=False),
    )
    op.create_index("ix_user_status_changes_user_id", "user_status_changes", ["user_id", "changed_at"])
    op.execute(
        "INSERT INTO user_status_changes (user_id, status, changed_at) SELECT id, CASE WHEN deleted THEN 'deleted' ELSE status END, "
        "CASE WHEN deleted THEN updated_at ELSE created_at END FROM users WHERE NOT is_system"
    )
    op.execute(_RECORD_STATUS)
    op.execute(
        "CREATE TRIGGER record_user_status AFTER INSERT OR UPDATE OF status, deleted ON users "
        "FOR EACH ROW EXECUTE FUNCTION record_user_status()"
    )


def _logs() -> None:
    op.create_table(
        "audit_logs",
        Column("id", _UUID, primary_key=True),
        Column("time", _TIME, nullable=False),
        Column("user_id", _UUID),
        Column("organization_id", _UUID),
        Column("ip", Text, nullable=False, server_default=""),
        Column("user_agent", Text, nullable=False, server_default=""),
        Column("resource_type", Text, nullable=False),
        Column("resource_id", _UUID, nullable=False),
        Column("resource_target", Text, nullable=False, server_default=""),
        Column("resource_icon", Text, nullable=False, server_default=""),
        Column("action", Text, nullable=False),
        Column("diff", JSONB, nullable=False, server_default=_EMPTY),
        Column("status_code", Integer, nullable=False),
        Column("additional_fields", JSONB, nullable=False, server_default=_EMPTY),
        Column("request_id", _UUID, nullable=False),
    )
    for column in ("time", "user_id", "resource_id"):
        op.create_index(f"ix_audit_logs_{column}", "audit_logs", [column])
    op.create_table(
        "connection_logs",
        Column("id", _UUID, primary_key=True),
        Column("connect_time", _TIME, nullable=False),
        Column("organization_id", _UUID, nullable=False),
        Column("workspace_owner_id", _UUID, nullable=False),
        Column("workspace_id", _UUID, nullable=False),
        Column("workspace_name", Text, nullable=False),
        Column("agent_name", Text, nullable=False),
        Column("type", Text, nullable=False),
        Column("ip", Text, nullable=False, server_default=""),
        Column("code", Integer),
        Column("user_agent", Text),
        Column("user_id", _UUID),
        Column("slug_or_port", Text),
        Column("connection_id", _UUID),
        Column("disconnect_time", _TIME),
        Column("disconnect_reason", Text),
    )
    for column in ("connect_time", "workspace_id"):
        op.create_index(f"ix_connection_logs_{column}", "connection_logs", [column])
    op.create_index(
        "ix_connection_logs_connection", "connection_logs", ["connection_id", "workspace_id", "agent_name"], unique=True
    )


def _notifications() -> None:
    op.create_table(
        "notification_messages",
        Column("id", _UUID, primary_key=True),
        Column("template_id", _UUID, nullable=False),
        Column(
            "user_id",
            _UUID,
            ForeignKey("users.id", ondelete="CASCADE", name="fk_notification_messages_user_id"),
            nullable=False,
        ),
        Column("method", Text, nullable=False),
        Column("payload", JSONB, nullable=False),
        Column("targets", ARRAY(Text), nullable=False, server_default="{}"),
        Column("status", Text, nullable=False, server_default="pending"),
        Column("status_reason", Text, nullable=False, server_default=""),
        Column("attempts", Integer, nullable=False, server_default="0"),
        Column("created_at", _TIME, nullable=False),
        Column("updated_at", _TIME, nullable=False),
        Column("next_try_at", _TIME, nullable=False),
    )
    op.create_index(
        "ix_notification_messages_due",
        "notification_messages",
        ["next_try_at"],
        postgresql_where=text("status = 'pending'"),
    )
    op.create_table(
        "notification_preferences",
        Column(
            "user_id",
            _UUID,
            ForeignKey("users.id", ondelete="CASCADE", name="fk_notification_preferences_user_id"),
            primary_key=True,
        ),
        Column("template_id", _UUID, primary_key=True),
        Column("disabled", Boolean, nullable=False),
        Column("updated_at", _TIME, nullable=False),
    )
    op.create_table(
        "notification_methods",
        Column("template_id", _UUID, primary_key=True),
        Column("method", Text, nullable=False),
    )


def downgrade() -> None:
    op.execute("DROP TRIGGER record_user_status ON users")
    op.execute("DROP FUNCTION record_user_status")
    for name in _TABLES:
        op.drop_table(name)
