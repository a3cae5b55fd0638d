"""Workspaces, builds with their parameters, resources, agents with everything below them, shared ports."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_workspaces()
    _create_workspace_port_shares()
    _create_workspace_resources()
    _create_workspace_agents()
    _create_workspace_builds()
    _create_workspace_agent_log_sources()
    _create_workspace_agent_logs()
    _create_workspace_agent_metadata()
    _create_workspace_agent_scripts()
    _create_workspace_agent_stats()
    _create_workspace_apps()
    _create_workspace_build_parameters()
    _create_workspace_agent_script_timings()
    _create_workspace_app_statuses()


def downgrade() -> None:
    for table in (
        "workspace_app_statuses",
        "workspace_agent_script_timings",
        "workspace_agent_stats",
        "workspace_agent_scripts",
        "workspace_agent_metadata",
        "workspace_agent_logs",
        "workspace_agent_log_sources",
        "workspace_apps",
        "workspace_agents",
        "workspace_resources",
        "workspace_build_parameters",
        "workspace_builds",
        "workspace_port_shares",
        "workspaces",
    ):
        op.drop_table(table)


def _create_workspaces() -> None:
    op.create_table(
        "workspaces",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("owner_id", sa.UUID(), nullable=False),
        sa.Column("organization_id", sa.UUID(), nullable=False),
        sa.Column("template_id", sa.UUID(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("deleted", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("autostart_schedule", sa.Text(), nullable=True),
        sa.Column("ttl_ms", sa.BigInteger(), nullable=True),
        sa.Column("last_used_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("dormant_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("deleting_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("next_start_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("automatic_updates", sa.Text(), server_default="never", nullable=False),
        sa.Column("favorite", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column(
            "user_acl", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column(
            "group_acl", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("latest_build_id", sa.UUID(), nullable=True),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name=op.f("fk_workspaces_organization_id")),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_workspaces_owner_id")),
        sa.ForeignKeyConstraint(["template_id"], ["templates.id"], name=op.f("fk_workspaces_template_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspaces")),
    )
    op.create_index(
        "ix_workspaces_owner_id_name_living",
        "workspaces",
        ["owner_id", sa.literal_column("lower(name)")],
        unique=True,
        postgresql_where=sa.text("NOT deleted"),
    )
    op.create_index("ix_workspaces_template_id", "workspaces", ["template_id"], unique=False)


def _create_workspace_port_shares() -> None:
    op.create_table(
        "workspace_port_shares",
        sa.Column("workspace_id", sa.UUID(), nullable=False),
        sa.Column("agent_name", sa.Text(), nullable=False),
        sa.Column("port", sa.Integer(), nullable=False),
        sa.Column("share_level", sa.Text(), nullable=False),
        sa.Column("protocol", sa.Text(), server_default="http", nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_workspace_port_shares_workspace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("workspace_id", "agent_name", "port", name=op.f("pk_workspace_port_shares")),
    )


def _create_workspace_resources() -> None:
    op.create_table(
        "workspace_resources",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("job_id", sa.UUID(), nullable=False),
        sa.Column("transition", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("hide", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("icon", sa.Text(), server_default="", nullable=False),
        sa.Column("instance_type", sa.Text(), server_default="", nullable=False),
        sa.Column("daily_cost", sa.Integer(), server_default="0", nullable=False),
        sa.Column("module_path", sa.Text(), server_default="", nullable=False),
        sa.Column(
            "metadata", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'[]'::jsonb"), nullable=False
        ),
        sa.Column("position", sa.Integer(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["provisioner_jobs.id"], name=op.f("fk_workspace_resources_job_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspace_resources")),
    )
    op.create_index("ix_workspace_resources_job_id", "workspace_resources", ["job_id"], unique=False)


def _create_workspace_agents() -> None:
    op.create_table(
        "workspace_agents",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("parent_id", sa.UUID(), nullable=True),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("resource_id", sa.UUID(), nullable=False),
        sa.Column("job_id", sa.UUID(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("auth_token", sa.UUID(), nullable=False),
        sa.Column("auth_instance_id", sa.Text(), nullable=True),
        sa.Column("api_key_scope", sa.Text(), server_default="all", nullable=False),
        sa.Column("architecture", sa.Text(), server_default="", nullable=False),
        sa.Column("operating_system", sa.Text(), server_default="", nullable=False),
        sa.Column("environment_variables", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("directory", sa.Text(), server_default="", nullable=False),
        sa.Column("expanded_directory", sa.Text(), server_default="", nullable=False),
        sa.Column("version", sa.Text(), server_default="", nullable=False),
        sa.Column("api_version", sa.Text(), server_default="", nullable=False),
        sa.Column("subsystems", postgresql.ARRAY(sa.Text()), server_default="{}", nullable=False),
        sa.Column("first_connected_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("last_connected_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("disconnected_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("lifecycle_state", sa.Text(), server_default="created", nullable=False),
        sa.Column("started_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("ready_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("connection_timeout_seconds", sa.Integer(), server_default="0", nullable=False),
        sa.Column("troubleshooting_url", sa.Text(), server_default="", nullable=False),
        sa.Column("motd_file", sa.Text(), server_default="", nullable=False),
        sa.Column("display_apps", postgresql.ARRAY(sa.Text()), server_default="{}", nullable=False),
        sa.Column("display_order", sa.Integer(), server_default="0", nullable=False),
        sa.Column("logs_length", sa.Integer(), server_default="0", nullable=False),
        sa.Column("logs_overflowed", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column(
            "resources_monitoring",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "devcontainers",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column("deleted", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["provisioner_jobs.id"], name=op.f("fk_workspace_agents_job_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["parent_id"], ["workspace_agents.id"], name=op.f("fk_workspace_agents_parent_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["resource_id"],
            ["workspace_resources.id"],
            name=op.f("fk_workspace_agents_resource_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspace_agents")),
    )
    op.create_index("ix_workspace_agents_auth_instance_id", "workspace_agents", ["auth_instance_id"], unique=False)
    op.create_index("ix_workspace_agents_auth_token", "workspace_agents", ["auth_token"], unique=False)
    op.create_index("ix_workspace_agents_job_id", "workspace_agents", ["job_id"], unique=False)
    op.create_index("ix_workspace_agents_resource_id", "workspace_agents", ["resource_id"], unique=False)


def _create_workspace_builds() -> None:
    op.create_table(
        "workspace_builds",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("workspace_id", sa.UUID(), nullable=False),
        sa.Column("template_version_id", sa.UUID(), nullable=False),
        sa.Column("build_number", sa.Integer(), nullable=False),
        sa.Column("transition", sa.Text(), nullable=False),
        sa.Column("initiator_id", sa.UUID(), nullable=False),
        sa.Column("job_id", sa.UUID(), nullable=False),
        sa.Column("reason", sa.Text(), server_default="initiator", nullable=False),
        sa.Column("provisioner_state", postgresql.BYTEA(), nullable=True),
        sa.Column("log_level", sa.Text(), server_default="", nullable=False),
        sa.Column("deadline", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("max_deadline", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("daily_cost", sa.Integer(), server_default="0", nullable=False),
        sa.Column("template_version_preset_id", sa.UUID(), nullable=True),
        sa.Column("has_ai_task", sa.Boolean(), nullable=True),
        sa.Column("has_external_agent", sa.Boolean(), nullable=True),
        sa.ForeignKeyConstraint(["initiator_id"], ["users.id"], name=op.f("fk_workspace_builds_initiator_id")),
        sa.ForeignKeyConstraint(["job_id"], ["provisioner_jobs.id"], name=op.f("fk_workspace_builds_job_id")),
        sa.ForeignKeyConstraint(
            ["template_version_id"], ["template_versions.id"], name=op.f("fk_workspace_builds_template_version_id")
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_workspace_builds_workspace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspace_builds")),
        sa.UniqueConstraint("job_id", name=op.f("uq_workspace_builds_job_id")),
        sa.UniqueConstraint("workspace_id", "build_number", name=op.f("uq_workspace_builds_workspace_id_build_number")),
    )
    op.create_index(
        "ix_workspace_builds_template_version_id", "workspace_builds", ["template_version_id"], unique=False
    )


def _create_workspace_agent_log_sources() -> None:
    op.create_table(
        "workspace_agent_log_sources",
        sa.Column("agent_id", sa.UUID(), nullable=False),
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("display_name", sa.Text(), server_default="", nullable=False),
        sa.Column("icon", sa.Text(), server_default="", nullable=False),
        sa.ForeignKeyConstraint(
            ["agent_id"],
            ["workspace_agents.id"],
            name=op.f("fk_workspace_agent_log_sources_agent_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("agent_id", "id", name=op.f("pk_workspace_agent_log_sources")),
    )


def _create_workspace_agent_logs() -> None:
    op.create_table(
        "workspace_agent_logs",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("agent_id", sa.UUID(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("output", sa.Text(), nullable=False),
        sa.Column("level", sa.Text(), server_default="info", nullable=False),
        sa.Column("log_source_id", sa.UUID(), nullable=False),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["workspace_agents.id"], name=op.f("fk_workspace_agent_logs_agent_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspace_agent_logs")),
    )
    op.create_index("ix_workspace_agent_logs_agent_id_id", "workspace_agent_logs", ["agent_id", "id"], unique=False)


def _create_workspace_agent_metadata() -> None:
    op.create_table(
        "workspace_agent_metadata",
        sa.Column("agent_id", sa.UUID(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("display_name", sa.Text(), server_default="", nullable=False),
        sa.Column("script", sa.Text(), server_default="", nullable=False),
        sa.Column("interval_seconds", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("timeout_seconds", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("display_order", sa.Integer(), server_default="0", nullable=False),
        sa.Column("value", sa.Text(), server_default="", nullable=False),
        sa.Column("error", sa.Text(), server_default="", nullable=False),
        sa.Column("collected_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["workspace_agents.id"], name=op.f("fk_workspace_agent_metadata_agent_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("agent_id", "key", name=op.f("pk_workspace_agent_metadata")),
    )


def _create_workspace_agent_scripts() -> None:
    op.create_table(
        "workspace_agent_scripts",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("agent_id", sa.UUID(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("log_source_id", sa.UUID(), nullable=False),
        sa.Column("log_path", sa.Text(), server_default="", nullable=False),
        sa.Column("script", sa.Text(), server_default="", nullable=False),
        sa.Column("cron", sa.Text(), server_default="", nullable=False),
        sa.Column("run_on_start", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("run_on_stop", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("start_blocks_login", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("timeout_seconds", sa.Integer(), server_default="0", nullable=False),
        sa.Column("display_name", sa.Text(), server_default="", nullable=False),
        sa.Column("position", sa.Integer(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["workspace_agents.id"], name=op.f("fk_workspace_agent_scripts_agent_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspace_agent_scripts")),
    )
    op.create_index("ix_workspace_agent_scripts_agent_id", "workspace_agent_scripts", ["agent_id"], unique=False)


def _create_workspace_agent_stats() -> None:
    op.create_table(
        "workspace_agent_stats",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("user_id", sa.UUID(), nullable=False),
        sa.Column("workspace_id", sa.UUID(), nullable=False),
        sa.Column("template_id", sa.UUID(), nullable=False),
        sa.Column("agent_id", sa.UUID(), nullable=False),
        sa.Column(
            "connections_by_proto",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("connection_count", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("connection_median_latency_ms", sa.Float(), server_default="-1", nullable=False),
        sa.Column("rx_packets", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("rx_bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("tx_packets", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("tx_bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("session_count_vscode", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("session_count_jetbrains", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("session_count_reconnecting_pty", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("session_count_ssh", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("usage", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["workspace_agents.id"], name=op.f("fk_workspace_agent_stats_agent_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_workspace_agent_stats_workspace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspace_agent_stats")),
    )
    op.create_index("ix_workspace_agent_stats_created_at", "workspace_agent_stats", ["created_at"], unique=False)
    op.create_index(
        "ix_workspace_agent_stats_template_id", "workspace_agent_stats", ["template_id", "created_at"], unique=False
    )


def _create_workspace_apps() -> None:
    op.create_table(
        "workspace_apps",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("agent_id", sa.UUID(), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("display_name", sa.Text(), server_default="", nullable=False),
        sa.Column("icon", sa.Text(), server_default="", nullable=False),
        sa.Column("command", sa.Text(), server_default="", nullable=False),
        sa.Column("url", sa.Text(), server_default="", nullable=False),
        sa.Column("external", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("subdomain", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("sharing_level", sa.Text(), server_default="owner", nullable=False),
        sa.Column("healthcheck_url", sa.Text(), server_default="", nullable=False),
        sa.Column("healthcheck_interval", sa.Integer(), server_default="0", nullable=False),
        sa.Column("healthcheck_threshold", sa.Integer(), server_default="0", nullable=False),
        sa.Column("health", sa.Text(), server_default="disabled", nullable=False),
        sa.Column("display_order", sa.Integer(), server_default="0", nullable=False),
        sa.Column("display_group", sa.Text(), server_default="", nullable=False),
        sa.Column("hidden", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("open_in", sa.Text(), server_default="slim-window", nullable=False),
        sa.Column("tooltip", sa.Text(), server_default="", nullable=False),
        sa.Column("position", sa.Integer(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["workspace_agents.id"], name=op.f("fk_workspace_apps_agent_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspace_apps")),
        sa.UniqueConstraint("agent_id", "slug", name=op.f("uq_workspace_apps_agent_id_slug")),
    )


def _create_workspace_build_parameters() -> None:
    op.create_table(
        "workspace_build_parameters",
        sa.Column("workspace_build_id", sa.UUID(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_build_id"],
            ["workspace_builds.id"],
            name=op.f("fk_workspace_build_parameters_workspace_build_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("workspace_build_id", "name", name=op.f("pk_workspace_build_parameters")),
    )


def _create_workspace_agent_script_timings() -> None:
    op.create_table(
        "workspace_agent_script_timings",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("script_id", sa.UUID(), nullable=False),
        sa.Column("started_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("ended_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["script_id"],
            ["workspace_agent_scripts.id"],
            name=op.f("fk_workspace_agent_script_timings_script_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspace_agent_script_timings")),
    )
    op.create_index(
        "ix_workspace_agent_script_timings_script_id", "workspace_agent_script_timings", ["script_id"], unique=False
    )


def _create_workspace_app_statuses() -> None:
    op.create_table(
        "workspace_app_statuses",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("workspace_id", sa.UUID(), nullable=False),
        sa.Column("agent_id", sa.UUID(), nullable=False),
        sa.Column("app_id", sa.UUID(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), server_default="", nullable=False),
        sa.Column("uri", sa.Text(), server_default="", nullable=False),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["workspace_agents.id"], name=op.f("fk_workspace_app_statuses_agent_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["app_id"], ["workspace_apps.id"], name=op.f("fk_workspace_app_statuses_app_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_workspace_app_statuses_workspace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspace_app_statuses")),
    )
    op.create_index(
        "ix_workspace_app_statuses_app_id", "workspace_app_statuses", ["app_id", "created_at"], unique=False
    )
    op.create_index(
        "ix_workspace_app_statuses_workspace_id", "workspace_app_statuses", ["workspace_id", "created_at"], unique=False
    )
