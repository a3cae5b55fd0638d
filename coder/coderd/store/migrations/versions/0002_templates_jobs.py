"""Templates, their versions, provisioner jobs with their logs, daemons and their keys."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_provisioner_keys()
    _create_provisioner_daemons()
    _create_provisioner_jobs()
    _create_provisioner_job_logs()
    _create_provisioner_job_timings()
    _create_templates()
    _create_template_versions()
    _create_template_version_parameters()
    _create_template_version_variables()
    _create_template_version_presets()
    _create_template_version_workspace_tags()
    _create_template_version_terraform()


def downgrade() -> None:
    op.drop_table("template_version_terraform")
    op.drop_table("template_version_workspace_tags")
    op.drop_table("template_version_presets")
    op.drop_table("template_version_variables")
    op.drop_table("template_version_parameters")
    op.drop_table("template_versions")
    op.drop_table("templates")
    op.drop_table("provisioner_job_timings")
    op.drop_table("provisioner_job_logs")
    op.drop_table("provisioner_jobs")
    op.drop_table("provisioner_daemons")
    op.drop_table("provisioner_keys")


def _create_provisioner_keys() -> None:
    op.create_table(
        "provisioner_keys",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("organization_id", sa.UUID(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column(
            "tags", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("hashed_secret", postgresql.BYTEA(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organizations.id"],
            name=op.f("fk_provisioner_keys_organization_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_provisioner_keys")),
        sa.UniqueConstraint("hashed_secret", name=op.f("uq_provisioner_keys_hashed_secret")),
    )
    op.create_index(
        "ix_provisioner_keys_organization_id_name",
        "provisioner_keys",
        ["organization_id", sa.literal_column("lower(name)")],
        unique=True,
    )


def _create_provisioner_daemons() -> None:
    op.create_table(
        "provisioner_daemons",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("organization_id", sa.UUID(), nullable=False),
        sa.Column("key_id", sa.UUID(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("last_seen_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), server_default="", nullable=False),
        sa.Column("api_version", sa.Text(), server_default="1.0", nullable=False),
        sa.Column("provisioners", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("tags", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organizations.id"],
            name=op.f("fk_provisioner_daemons_organization_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_provisioner_daemons")),
    )
    op.create_index(
        "ix_provisioner_daemons_identity",
        "provisioner_daemons",
        ["organization_id", sa.literal_column("lower(name)"), sa.literal_column("coalesce(tags ->> 'owner', '')")],
        unique=True,
    )


def _create_provisioner_jobs() -> None:
    op.create_table(
        "provisioner_jobs",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("started_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("completed_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("canceled_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("error", sa.Text(), server_default="", nullable=False),
        sa.Column("error_code", sa.Text(), server_default="", nullable=False),
        sa.Column("organization_id", sa.UUID(), nullable=False),
        sa.Column("initiator_id", sa.UUID(), nullable=False),
        sa.Column("provisioner", sa.Text(), nullable=False),
        sa.Column("file_id", sa.UUID(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("input", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("worker_id", sa.UUID(), nullable=True),
        sa.Column("tags", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("priority", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("logs_length", sa.Integer(), server_default="0", nullable=False),
        sa.Column("logs_overflowed", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.ForeignKeyConstraint(["file_id"], ["files.id"], name=op.f("fk_provisioner_jobs_file_id")),
        sa.ForeignKeyConstraint(["initiator_id"], ["users.id"], name=op.f("fk_provisioner_jobs_initiator_id")),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organizations.id"], name=op.f("fk_provisioner_jobs_organization_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_provisioner_jobs")),
    )
    op.create_index(
        "ix_provisioner_jobs_organization_id_created_at",
        "provisioner_jobs",
        ["organization_id", "created_at"],
        unique=False,
    )
    op.create_index(
        "ix_provisioner_jobs_queue",
        "provisioner_jobs",
        ["organization_id", "priority", "created_at"],
        unique=False,
        postgresql_where=sa.text("started_at IS NULL AND completed_at IS NULL"),
    )
    op.create_index(
        "ix_provisioner_jobs_unfinished",
        "provisioner_jobs",
        ["updated_at"],
        unique=False,
        postgresql_where=sa.text("completed_at IS NULL"),
    )
    op.create_index(
        "ix_provisioner_jobs_worker_id_started_at", "provisioner_jobs", ["worker_id", "started_at"], unique=False
    )


def _create_provisioner_job_logs() -> None:
    op.create_table(
        "provisioner_job_logs",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("job_id", sa.UUID(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("level", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("output", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["provisioner_jobs.id"], name=op.f("fk_provisioner_job_logs_job_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_provisioner_job_logs")),
    )
    op.create_index("ix_provisioner_job_logs_job_id_id", "provisioner_job_logs", ["job_id", "id"], unique=False)


def _create_provisioner_job_timings() -> None:
    op.create_table(
        "provisioner_job_timings",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("job_id", sa.UUID(), nullable=False),
        sa.Column("started_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("ended_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("resource", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["provisioner_jobs.id"], name=op.f("fk_provisioner_job_timings_job_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_provisioner_job_timings")),
    )
    op.create_index("ix_provisioner_job_timings_job_id", "provisioner_job_timings", ["job_id"], unique=False)


def _create_templates() -> None:
    op.create_table(
        "templates",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("organization_id", sa.UUID(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("display_name", sa.Text(), server_default="", nullable=False),
        sa.Column("description", sa.Text(), server_default="", nullable=False),
        sa.Column("icon", sa.Text(), server_default="", nullable=False),
        sa.Column("provisioner", sa.Text(), nullable=False),
        sa.Column("active_version_id", sa.UUID(), nullable=False),
        sa.Column("created_by", sa.UUID(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("deleted", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("deprecated", sa.Text(), server_default="", nullable=False),
        sa.Column("default_ttl_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("activity_bump_ms", sa.BigInteger(), server_default="3600000", nullable=False),
        sa.Column("time_til_autostop_notify_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("autostop_days", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("autostop_weeks", sa.SmallInteger(), server_default="1", nullable=False),
        sa.Column("autostart_days", sa.SmallInteger(), server_default="127", nullable=False),
        sa.Column("allow_user_cancel_workspace_jobs", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("allow_user_autostart", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("allow_user_autostop", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("failure_ttl_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("time_til_dormant_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("time_til_dormant_autodelete_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("require_active_version", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("max_port_share_level", sa.Text(), server_default="public", nullable=False),
        sa.Column("cors_behavior", sa.Text(), server_default="simple", nullable=False),
        sa.Column("use_classic_parameter_flow", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("disable_module_cache", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("agents_allowed", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column(
            "user_acl", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column(
            "group_acl", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.ForeignKeyConstraint(["created_by"], ["users.id"], name=op.f("fk_templates_created_by")),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name=op.f("fk_templates_organization_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_templates")),
    )
    op.create_index("ix_templates_active_version_id", "templates", ["active_version_id"], unique=False)
    op.create_index(
        "ix_templates_organization_id_name_living",
        "templates",
        ["organization_id", sa.literal_column("lower(name)")],
        unique=True,
        postgresql_where=sa.text("NOT deleted"),
    )


def _create_template_versions() -> None:
    op.create_table(
        "template_versions",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("template_id", sa.UUID(), nullable=True),
        sa.Column("organization_id", sa.UUID(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), server_default="", nullable=False),
        sa.Column("readme", sa.Text(), server_default="", nullable=False),
        sa.Column("job_id", sa.UUID(), nullable=False),
        sa.Column("created_by", sa.UUID(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("archived", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("has_ai_task", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("has_external_agent", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("source_example_id", sa.Text(), server_default="", nullable=False),
        sa.Column(
            "external_auth_providers",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(["created_by"], ["users.id"], name=op.f("fk_template_versions_created_by")),
        sa.ForeignKeyConstraint(["job_id"], ["provisioner_jobs.id"], name=op.f("fk_template_versions_job_id")),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organizations.id"], name=op.f("fk_template_versions_organization_id")
        ),
        sa.ForeignKeyConstraint(
            ["template_id"], ["templates.id"], name=op.f("fk_template_versions_template_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_template_versions")),
        sa.UniqueConstraint("job_id", name=op.f("uq_template_versions_job_id")),
        sa.UniqueConstraint("template_id", "name", name=op.f("uq_template_versions_template_id_name")),
    )
    op.create_index(
        "ix_template_versions_template_id_created_at", "template_versions", ["template_id", "created_at"], unique=False
    )


def _create_template_version_parameters() -> None:
    op.create_table(
        "template_version_parameters",
        sa.Column("template_version_id", sa.UUID(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("display_name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("form_type", sa.Text(), nullable=False),
        sa.Column("mutable", sa.Boolean(), nullable=False),
        sa.Column("default_value", sa.Text(), nullable=False),
        sa.Column("icon", sa.Text(), nullable=False),
        sa.Column("options", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("validation_regex", sa.Text(), nullable=False),
        sa.Column("validation_error", sa.Text(), nullable=False),
        sa.Column("validation_min", sa.Integer(), nullable=True),
        sa.Column("validation_max", sa.Integer(), nullable=True),
        sa.Column("validation_monotonic", sa.Text(), nullable=False),
        sa.Column("required", sa.Boolean(), nullable=False),
        sa.Column("ephemeral", sa.Boolean(), nullable=False),
        sa.Column("display_order", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["template_version_id"],
            ["template_versions.id"],
            name=op.f("fk_template_version_parameters_template_version_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("template_version_id", "name", name=op.f("pk_template_version_parameters")),
    )


def _create_template_version_variables() -> None:
    op.create_table(
        "template_version_variables",
        sa.Column("template_version_id", sa.UUID(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("default_value", sa.Text(), nullable=False),
        sa.Column("required", sa.Boolean(), nullable=False),
        sa.Column("sensitive", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["template_version_id"],
            ["template_versions.id"],
            name=op.f("fk_template_version_variables_template_version_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("template_version_id", "name", name=op.f("pk_template_version_variables")),
    )


def _create_template_version_presets() -> None:
    op.create_table(
        "template_version_presets",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("template_version_id", sa.UUID(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("icon", sa.Text(), nullable=False),
        sa.Column("is_default", sa.Boolean(), nullable=False),
        sa.Column("parameters", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("desired_instances", sa.Integer(), nullable=True),
        sa.Column("expire_after_seconds", sa.Integer(), server_default="0", nullable=False),
        sa.Column("scheduling_timezone", sa.Text(), server_default="", nullable=False),
        sa.Column(
            "schedules", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'[]'::jsonb"), nullable=False
        ),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["template_version_id"],
            ["template_versions.id"],
            name=op.f("fk_template_version_presets_template_version_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_template_version_presets")),
    )
    op.create_index(
        "ix_template_version_presets_template_version_id",
        "template_version_presets",
        ["template_version_id"],
        unique=False,
    )


def _create_template_version_workspace_tags() -> None:
    op.create_table(
        "template_version_workspace_tags",
        sa.Column("template_version_id", sa.UUID(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["template_version_id"],
            ["template_versions.id"],
            name=op.f("fk_template_version_workspace_tags_template_version_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("template_version_id", "key", name=op.f("pk_template_version_workspace_tags")),
    )


def _create_template_version_terraform() -> None:
    op.create_table(
        "template_version_terraform",
        sa.Column("template_version_id", sa.UUID(), nullable=False),
        sa.Column("cached_plan", postgresql.BYTEA(), nullable=False),
        sa.Column("module_files_id", sa.UUID(), nullable=True),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["module_files_id"], ["files.id"], name=op.f("fk_template_version_terraform_module_files_id")
        ),
        sa.ForeignKeyConstraint(
            ["template_version_id"],
            ["template_versions.id"],
            name=op.f("fk_template_version_terraform_template_version_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("template_version_id", name=op.f("pk_template_version_terraform")),
    )
