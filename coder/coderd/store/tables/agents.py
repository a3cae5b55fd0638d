"""Tables of agents and their children: apps, scripts, logs, metadata, statistics.

Every start build inserts new agents; an old build's agents stay as history and can no longer authenticate. An agent's
`status` is not stored, it is derived from the connection times (`domain/agents/agents.py`). `job_id` repeats the
resource's, so that everything of a page of workspaces is found by its jobs.

JSON columns: `resources_monitoring` is `{"memory": {enabled, threshold} or null, "volumes": [{path, enabled,
threshold}]}`, `devcontainers` a list of `{id, name, workspace_folder, config_path, subagent_id}`.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Identity,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from coder.coderd.store.engine.metadata import Json, TextArray, Timestamp, Uuid, metadata

workspace_agents = Table(
    "workspace_agents",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("parent_id", Uuid, ForeignKey("workspace_agents.id", ondelete="CASCADE")),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("resource_id", Uuid, ForeignKey("workspace_resources.id", ondelete="CASCADE"), nullable=False),
    Column("job_id", Uuid, ForeignKey("provisioner_jobs.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("auth_token", Uuid, nullable=False),
    Column("auth_instance_id", Text),
    Column("api_key_scope", Text, nullable=False, server_default="all"),
    Column("architecture", Text, nullable=False, server_default=""),
    Column("operating_system", Text, nullable=False, server_default=""),
    Column("environment_variables", Json),
    Column("directory", Text, nullable=False, server_default=""),
    Column("expanded_directory", Text, nullable=False, server_default=""),
    Column("version", Text, nullable=False, server_default=""),
    Column("api_version", Text, nullable=False, server_default=""),
    Column("subsystems", TextArray, nullable=False, server_default="{}"),
    Column("first_connected_at", Timestamp),
    Column("last_connected_at", Timestamp),
    Column("disconnected_at", Timestamp),
    # Newest link at a replica (services/agents/agent_connections.py): ends of older links are ignored.
    Column("link_id", Uuid),
    Column("lifecycle_state", Text, nullable=False, server_default="created"),
    Column("started_at", Timestamp),
    Column("ready_at", Timestamp),
    Column("first_ready_at", Timestamp),
    Column("connection_timeout_seconds", Integer, nullable=False, server_default="0"),
    Column("troubleshooting_url", Text, nullable=False, server_default=""),
    Column("motd_file", Text, nullable=False, server_default=""),
    Column("display_apps", TextArray, nullable=False, server_default="{}"),
    Column("display_order", Integer, nullable=False, server_default="0"),
    Column("logs_length", Integer, nullable=False, server_default="0"),
    Column("logs_overflowed", Boolean, nullable=False, server_default=text("false")),
    Column("resources_monitoring", Json, nullable=False, server_default=text("'{}'::jsonb")),
    Column("devcontainers", Json, nullable=False, server_default=text("'[]'::jsonb")),
    Column("deleted", Boolean, nullable=False, server_default=text("false")),
    Column("host_vitals", Json),
    Column("host_vitals_at", Timestamp),
    Column("path_vitals", Json),
    Column("path_vitals_at", Timestamp),
    Index("ix_workspace_agents_resource_id", "resource_id"),
    Index("ix_workspace_agents_job_id", "job_id"),
    Index("ix_workspace_agents_auth_token", "auth_token"),
    Index("ix_workspace_agents_auth_instance_id", "auth_instance_id"),
)

workspace_agent_tokens = Table(
    "workspace_agent_tokens",
    metadata,
    Column("token", Uuid, primary_key=True),
    Column("workspace_id", Uuid, ForeignKey("workspaces.id", ondelete="CASCADE"), nullable=False),
    Column("agent_name", Text, nullable=False),
    Column("template_token", Uuid, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("used_at", Timestamp),
    UniqueConstraint(
        "workspace_id", "agent_name", "template_token", "generation", name="uq_workspace_agent_tokens_generation"
    ),
)
"""Rotated tokens of agents.

`template_token` is the one it replaces (`workspace_agents.auth_token`, generation 0): it outlives builds that keep that
token, and is deleted with a build that changes it.
"""

workspace_agent_disconnects = Table(
    "workspace_agent_disconnects",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("workspace_id", Uuid, ForeignKey("workspaces.id", ondelete="CASCADE"), nullable=False),
    Column("agent_name", Text, nullable=False),
    Column("disconnected_at", Timestamp, nullable=False),
    Column("ended", Text, nullable=False),
    Column("returned_at", Timestamp),
    Column("told_at", Timestamp),
    Column("cause", Text, nullable=False),
    Column("detail", Text, nullable=False, server_default=""),
    Column("events", Json, nullable=False, server_default=text("'[]'::jsonb")),
    Index("ix_workspace_agent_disconnects_agent", "workspace_id", "agent_name", "disconnected_at"),
)
"""Disconnects of agents and their causes (`domain/agents/disconnects.py`); by name, since every build creates new
agents."""

workspace_apps = Table(
    "workspace_apps",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("created_at", Timestamp, nullable=False),
    Column("agent_id", Uuid, ForeignKey("workspace_agents.id", ondelete="CASCADE"), nullable=False),
    Column("slug", Text, nullable=False),
    Column("display_name", Text, nullable=False, server_default=""),
    Column("icon", Text, nullable=False, server_default=""),
    Column("command", Text, nullable=False, server_default=""),
    Column("url", Text, nullable=False, server_default=""),
    Column("external", Boolean, nullable=False, server_default=text("false")),
    Column("subdomain", Boolean, nullable=False, server_default=text("false")),
    Column("sharing_level", Text, nullable=False, server_default="owner"),
    Column("healthcheck_url", Text, nullable=False, server_default=""),
    Column("healthcheck_interval", Integer, nullable=False, server_default="0"),
    Column("healthcheck_threshold", Integer, nullable=False, server_default="0"),
    Column("health", Text, nullable=False, server_default="disabled"),
    Column("display_order", Integer, nullable=False, server_default="0"),
    Column("display_group", Text, nullable=False, server_default=""),
    Column("hidden", Boolean, nullable=False, server_default=text("false")),
    Column("open_in", Text, nullable=False, server_default="slim-window"),
    Column("tooltip", Text, nullable=False, server_default=""),
    Column("position", Integer, nullable=False, server_default="0"),
    UniqueConstraint("agent_id", "slug"),
)

workspace_app_statuses = Table(
    "workspace_app_statuses",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("created_at", Timestamp, nullable=False),
    Column("workspace_id", Uuid, ForeignKey("workspaces.id", ondelete="CASCADE"), nullable=False),
    Column("agent_id", Uuid, ForeignKey("workspace_agents.id", ondelete="CASCADE"), nullable=False),
    Column("app_id", Uuid, ForeignKey("workspace_apps.id", ondelete="CASCADE"), nullable=False),
    Column("state", Text, nullable=False),
    Column("message", Text, nullable=False, server_default=""),
    Column("uri", Text, nullable=False, server_default=""),
    Index("ix_workspace_app_statuses_app_id", "app_id", "created_at"),
    Index("ix_workspace_app_statuses_workspace_id", "workspace_id", "created_at"),
)

workspace_agent_log_sources = Table(
    "workspace_agent_log_sources",
    metadata,
    Column("agent_id", Uuid, ForeignKey("workspace_agents.id", ondelete="CASCADE"), primary_key=True),
    Column("id", Uuid, primary_key=True),
    Column("created_at", Timestamp, nullable=False),
    Column("display_name", Text, nullable=False, server_default=""),
    Column("icon", Text, nullable=False, server_default=""),
)

workspace_agent_scripts = Table(
    "workspace_agent_scripts",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("agent_id", Uuid, ForeignKey("workspace_agents.id", ondelete="CASCADE"), nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("log_source_id", Uuid, nullable=False),
    Column("log_path", Text, nullable=False, server_default=""),
    Column("script", Text, nullable=False, server_default=""),
    Column("cron", Text, nullable=False, server_default=""),
    Column("run_on_start", Boolean, nullable=False, server_default=text("false")),
    Column("run_on_stop", Boolean, nullable=False, server_default=text("false")),
    Column("start_blocks_login", Boolean, nullable=False, server_default=text("false")),
    Column("timeout_seconds", Integer, nullable=False, server_default="0"),
    Column("display_name", Text, nullable=False, server_default=""),
    Column("position", Integer, nullable=False, server_default="0"),
    Index("ix_workspace_agent_scripts_agent_id", "agent_id"),
)

workspace_agent_script_timings = Table(
    "workspace_agent_script_timings",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("script_id", Uuid, ForeignKey("workspace_agent_scripts.id", ondelete="CASCADE"), nullable=False),
    Column("started_at", Timestamp, nullable=False),
    Column("ended_at", Timestamp, nullable=False),
    Column("exit_code", Integer, nullable=False),
    Column("stage", Text, nullable=False),
    Column("status", Text, nullable=False),
    Index("ix_workspace_agent_script_timings_script_id", "script_id"),
)

workspace_agent_logs = Table(
    "workspace_agent_logs",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("agent_id", Uuid, ForeignKey("workspace_agents.id", ondelete="CASCADE"), nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("output", Text, nullable=False),
    Column("level", Text, nullable=False, server_default="info"),
    Column("log_source_id", Uuid, nullable=False),
    Index("ix_workspace_agent_logs_agent_id_id", "agent_id", "id"),
)

workspace_agent_metadata = Table(
    "workspace_agent_metadata",
    metadata,
    Column("agent_id", Uuid, ForeignKey("workspace_agents.id", ondelete="CASCADE"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("display_name", Text, nullable=False, server_default=""),
    Column("script", Text, nullable=False, server_default=""),
    Column("interval_seconds", BigInteger, nullable=False, server_default="0"),
    Column("timeout_seconds", BigInteger, nullable=False, server_default="0"),
    Column("display_order", Integer, nullable=False, server_default="0"),
    Column("value", Text, nullable=False, server_default=""),
    Column("error", Text, nullable=False, server_default=""),
    Column("collected_at", Timestamp),
)

workspace_agent_stats = Table(
    "workspace_agent_stats",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("created_at", Timestamp, nullable=False),
    Column("user_id", Uuid, nullable=False),
    Column("workspace_id", Uuid, ForeignKey("workspaces.id", ondelete="CASCADE"), nullable=False),
    Column("template_id", Uuid, nullable=False),
    Column("agent_id", Uuid, ForeignKey("workspace_agents.id", ondelete="CASCADE"), nullable=False),
    Column("connections_by_proto", Json, nullable=False, server_default=text("'{}'::jsonb")),
    Column("connection_count", BigInteger, nullable=False, server_default="0"),
    Column("connection_median_latency_ms", Float, nullable=False, server_default="-1"),
    Column("rx_packets", BigInteger, nullable=False, server_default="0"),
    Column("rx_bytes", BigInteger, nullable=False, server_default="0"),
    Column("tx_packets", BigInteger, nullable=False, server_default="0"),
    Column("tx_bytes", BigInteger, nullable=False, server_default="0"),
    Column("session_count_vscode", BigInteger, nullable=False, server_default="0"),
    Column("session_count_jetbrains", BigInteger, nullable=False, server_default="0"),
    Column("session_count_reconnecting_pty", BigInteger, nullable=False, server_default="0"),
    Column("session_count_ssh", BigInteger, nullable=False, server_default="0"),
    Column("usage", Boolean, nullable=False, server_default=text("false")),
    Index("ix_workspace_agent_stats_created_at", "created_at"),
    Index("ix_workspace_agent_stats_template_id", "template_id", "created_at"),
)

resource_monitors = Table(
    "resource_monitors",
    metadata,
    Column("agent_id", Uuid, ForeignKey("workspace_agents.id", ondelete="CASCADE"), primary_key=True),
    Column("path", Text, primary_key=True),
    Column("state", Text, nullable=False),
    Column("quiet_until", Timestamp),
)
"""State of an agent's monitored resources; an empty path is its memory."""
