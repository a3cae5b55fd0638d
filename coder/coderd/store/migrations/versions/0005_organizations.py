"""Secrets and skills of users; workspace proxies. (Groups and custom roles have been there from the start.)"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def _time(name: str) -> sa.Column[object]:
    return sa.Column(name, postgresql.TIMESTAMP(timezone=True), nullable=False)


def upgrade() -> None:
    op.create_table(
        "user_secrets",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("user_id", sa.UUID(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), server_default="", nullable=False),
        sa.Column("env_name", sa.Text(), server_default="", nullable=False),
        sa.Column("file_path", sa.Text(), server_default="", nullable=False),
        sa.Column("enabled", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        _time("created_at"),
        _time("updated_at"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_user_secrets_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_user_secrets")),
        sa.UniqueConstraint("user_id", "name", name=op.f("uq_user_secrets_user_id")),
    )
    for column in ("env_name", "file_path"):
        op.create_index(
            f"ix_user_secrets_user_id_{column}",
            "user_secrets",
            ["user_id", column],
            unique=True,
            postgresql_where=sa.text(f"{column} <> ''"),
        )
    op.create_table(
        "user_skills",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("user_id", sa.UUID(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), server_default="", nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        _time("created_at"),
        _time("updated_at"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_user_skills_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_user_skills")),
        sa.UniqueConstraint("user_id", "name", name=op.f("uq_user_skills_user_id")),
    )
    op.create_table(
        "workspace_proxies",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("display_name", sa.Text(), server_default="", nullable=False),
        sa.Column("icon", sa.Text(), server_default="", nullable=False),
        sa.Column("url", sa.Text(), server_default="", nullable=False),
        sa.Column("wildcard_hostname", sa.Text(), server_default="", nullable=False),
        sa.Column("derp_enabled", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("derp_only", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("version", sa.Text(), server_default="", nullable=False),
        sa.Column("hashed_secret", postgresql.BYTEA(), nullable=False),
        sa.Column("deleted", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        _time("created_at"),
        _time("updated_at"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspace_proxies")),
    )
    op.create_index(
        "ix_workspace_proxies_name_living",
        "workspace_proxies",
        [sa.literal_column("lower(name)")],
        unique=True,
        postgresql_where=sa.text("NOT deleted"),
    )


def downgrade() -> None:
    op.drop_table("workspace_proxies")
    op.drop_table("user_skills")
    op.drop_table("user_secrets")
