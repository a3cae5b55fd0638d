"""Steps for agents and their applications, scripts, logs, metadata and statistics."""

from __future__ import annotations

from coder.coderd.store.original.step import Step, filled, known_time, same, text, texts

_MEMORY = "workspace_agent_memory_resource_monitors m WHERE m.agent_id = s.id"
_VOLUMES = "workspace_agent_volume_resource_monitors v WHERE v.agent_id = s.id"
_AGENT = same(
    "id parent_id created_at updated_at resource_id name auth_token auth_instance_id architecture operating_system "
    "environment_variables directory expanded_directory version api_version first_connected_at last_connected_at "
    "disconnected_at started_at ready_at connection_timeout_seconds troubleshooting_url motd_file display_order "
    "logs_length logs_overflowed deleted",
    job_id="r.job_id",
    api_key_scope=text("api_key_scope"),
    subsystems=texts("subsystems"),
    display_apps=texts("display_apps"),
    lifecycle_state=text("lifecycle_state"),
    first_ready_at="s.ready_at",
    resources_monitoring=f"CASE WHEN EXISTS (SELECT FROM {_MEMORY}) OR EXISTS (SELECT FROM {_VOLUMES}) "  # noqa: S608
    "THEN jsonb_build_object('memory', (SELECT jsonb_build_object('enabled', m.enabled, 'threshold', m.threshold) "
    f"FROM {_MEMORY}), 'volumes', COALESCE((SELECT jsonb_agg(jsonb_build_object('path', v.path, 'enabled', v.enabled, "
    f"'threshold', v.threshold) ORDER BY v.path) FROM {_VOLUMES}), '[]'::jsonb)) ELSE '{{}}'::jsonb END",
    devcontainers="COALESCE((SELECT jsonb_agg(jsonb_build_object('id', d.id, 'name', d.name, 'workspace_folder', "
    "d.workspace_folder, 'config_path', d.config_path, 'subagent_id', COALESCE(d.subagent_id::text, '')) "
    "ORDER BY d.created_at, d.id) FROM workspace_agent_devcontainers d WHERE d.workspace_agent_id = s.id), "
    "'[]'::jsonb)",
)
_AGENTS = "workspace_agents s JOIN workspace_resources r ON r.id = s.resource_id"

STEPS = (
    # Parents first: a sub-agent refers to its agent.
    Step("workspace_agents", _AGENTS, _AGENT, where="s.parent_id IS NULL", cursor="id", batch=200),
    Step(
        "workspace_agents",
        _AGENTS,
        _AGENT,
        where="s.parent_id IS NOT NULL",
        name="workspace_agents below others",
        cursor="id",
        batch=200,
    ),
    Step(
        "workspace_apps",
        "workspace_apps s",
        same(
            "id created_at agent_id slug display_name icon external subdomain healthcheck_url healthcheck_interval "
            "healthcheck_threshold display_order hidden tooltip",
            command=filled("command"),
            url=filled("url"),
            sharing_level=text("sharing_level"),
            health=text("health"),
            display_group=filled("display_group"),
            open_in=text("open_in"),
        ),
        cursor="id",
    ),
    Step(
        "workspace_app_statuses",
        "workspace_app_statuses s",
        same("id created_at workspace_id agent_id app_id message", state=text("state"), uri=filled("uri")),
    ),
    Step(
        "workspace_agent_log_sources",
        "workspace_agent_log_sources s",
        same("id created_at display_name icon", agent_id="s.workspace_agent_id"),
    ),
    Step(
        "workspace_agent_scripts",
        "workspace_agent_scripts s",
        same(
            "id created_at log_source_id log_path script cron run_on_start run_on_stop start_blocks_login "
            "timeout_seconds display_name",
            agent_id="s.workspace_agent_id",
        ),
        cursor="id",
        batch=200,
    ),
    Step(
        "workspace_agent_script_timings",
        "workspace_agent_script_timings s",
        same("script_id started_at ended_at exit_code", stage=text("stage"), status=text("status")),
        natural_key=("script_id", "started_at", "stage"),
    ),
    Step(
        "workspace_agent_logs",
        "workspace_agent_logs s",
        same("id agent_id created_at output log_source_id", level=text("level")),
        cursor="id",
        batch=5000,
    ),
    Step(
        "workspace_agent_metadata",
        "workspace_agent_metadata s",
        same(
            "key display_name script display_order value error",
            agent_id="s.workspace_agent_id",
            interval_seconds="s.interval",
            timeout_seconds="s.timeout",
            collected_at=known_time("collected_at"),
        ),
        batch=200,
    ),
    Step(
        "workspace_agent_stats",
        "workspace_agent_stats s",
        same(
            "created_at user_id workspace_id template_id agent_id connections_by_proto connection_count "
            "connection_median_latency_ms rx_packets rx_bytes tx_packets tx_bytes session_count_vscode "
            "session_count_jetbrains session_count_reconnecting_pty session_count_ssh usage"
        ),
        natural_key=("agent_id", "created_at", "user_id"),
        batch=5000,
    ),
    Step(
        "resource_monitors",
        "workspace_agent_memory_resource_monitors s",
        same("agent_id", path="''", state=text("state"), quiet_until="s.debounced_until"),
        name="memory monitors",
    ),
    Step(
        "resource_monitors",
        "workspace_agent_volume_resource_monitors s",
        same("agent_id path", state=text("state"), quiet_until="s.debounced_until"),
        name="volume monitors",
    ),
    Step(
        "workspace_app_stats",
        "workspace_app_stats s JOIN workspaces w ON w.id = s.workspace_id",
        same(
            "session_id user_id workspace_id agent_id access_method slug_or_port session_started_at session_ended_at "
            "requests",
            template_id="w.template_id",
        ),
    ),
)
