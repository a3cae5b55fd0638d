"""What the import does not take, with reasons: whole tables, and columns of tables that it reads.

With `steps` this covers every column of the original; `tests/unit/coderd/store/original` compares both with its schema.
"""

from __future__ import annotations

from collections.abc import Mapping

_AI = "belongs to features for AI providers and agents in chats, which this server does not have"
_BRIDGE = "belongs to the AI gateway, which this server does not have"
_BOUNDARY = "belongs to the agent firewall, which this server does not have"
_MCP = "belongs to MCP servers of chats, which this server does not have"
_MESH = "state of open connections; agents and clients connect again"
_LEGACY = "parameters of releases before 0.14, which the original does not use any more"
_TELEMETRY = "state of the original's own telemetry"
_CONTEXT = "context that agents report for chats, which this server does not have"
_BUDGET = "spend limits of AI features, which this server does not have"

TABLES: Mapping[str, str] = {
    "ai_gateway_keys": _BRIDGE,
    "ai_model_prices": _AI,
    "ai_provider_keys": _AI,
    "ai_providers": _AI,
    "ai_seat_state": _AI,
    "ai_user_daily_spend": _AI,
    "aibridge_interceptions": _BRIDGE,
    "aibridge_model_thoughts": _BRIDGE,
    "aibridge_token_usages": _BRIDGE,
    "aibridge_tool_usages": _BRIDGE,
    "aibridge_user_prompts": _BRIDGE,
    "boundary_logs": _BOUNDARY,
    "boundary_sessions": _BOUNDARY,
    "boundary_usage_stats": _BOUNDARY,
    "chat_context_resources": _AI,
    "chat_debug_runs": _AI,
    "chat_debug_steps": _AI,
    "chat_diff_statuses": _AI,
    "chat_file_links": _AI,
    "chat_files": _AI,
    "chat_heartbeats": _AI,
    "chat_messages": _AI,
    "chat_model_configs": _AI,
    "chat_queued_messages": _AI,
    "chat_usage_limit_config": _AI,
    "chats": _AI,
    "crypto_keys": "signs tickets and tokens that live for a day at most; this server generates its own keys",
    "group_ai_budgets": _BUDGET,
    "jfrog_xray_scans": "results of an integration that this server does not have",
    "licenses": "this server needs no license",
    "mcp_server_configs": _MCP,
    "mcp_server_user_tokens": _MCP,
    "notification_messages": "the queue of messages to send; pending ones are named in the report and not sent",
    "notification_report_generator_logs": "times of the last weekly reports; the first report here is a week later",
    "oauth2_provider_app_codes": "authorization codes live for ten minutes",
    "parameter_schemas": _LEGACY,
    "parameter_values": _LEGACY,
    "replicas": "processes of the original; this server writes its own rows",
    "tailnet_coordinators": _MESH,
    "tailnet_peers": _MESH,
    "tailnet_tunnels": _MESH,
    "telemetry_items": _TELEMETRY,
    "telemetry_locks": _TELEMETRY,
    "template_usage_stats": "summaries that this server computes from the statistics of agents and applications; "
    "insights older than those are lost",
    "usage_events": _TELEMETRY,
    "usage_events_daily": _TELEMETRY,
    "user_ai_budget_overrides": _BUDGET,
    "user_ai_provider_keys": _AI,
    "workspace_agent_context_resources": _CONTEXT,
    "workspace_agent_context_snapshots": _CONTEXT,
    "workspace_app_audit_sessions": "open application sessions of the connection log; the log itself is imported",
    "workspace_build_orchestrations": "restarts in progress; run `coder restart` again for those in the report",
    "workspace_modules": "modules of past builds, which only the original's telemetry reads",
}
"""Tables of which nothing is taken."""

DERIVED: Mapping[str, str] = {
    "dbcrypt_keys": "values are decrypted with the original's keys and encrypted with this server's",
    "schema_migrations": "its number is named in the report",
    "site_configs": "deployment id, appearance, banners, settings of notifications, health and prebuilds, IdP sync, "
    "and the keys of browser notifications; the rest belongs to the original's processes",
}
"""Tables that the import reads without a step of their own."""

_KEY_ID = "tells whether the value is encrypted; it is encrypted with this server's keys instead"
_SPEND = "spend limit of chats, which this server does not have"
_UNUSED = "no page or program shows it"

COLUMNS: Mapping[str, Mapping[str, str]] = {
    "custom_roles": {"user_permissions": "roles of an organization cannot have them"},
    "external_auth_links": {
        "oauth_refresh_failure_reason": "the server tries a refresh again and records its own result",
    },
    "groups": {"chat_spend_limit_micros": _SPEND},
    "notification_preferences": {"created_at": _UNUSED},
    "notification_templates": dict.fromkeys(
        ("name", "title_template", "body_template", "actions", "group", "enabled_by_default"),
        "texts are built in",
    ),
    "oauth2_provider_app_tokens": {
        "id": _UNUSED,
        "created_at": _UNUSED,
        "audience": "tokens are not bound to a resource here",
    },
    "oauth2_provider_apps": {
        "client_id_issued_at": "equals created_at",
        "client_secret_expires_at": "secrets do not expire",
        "registration_client_uri": "follows from the access URL",
    },
    "provisioner_daemons": {"replica_id": "replica of the original that the daemon was connected to"},
    "provisioner_jobs": {
        "storage_method": "has one value",
        "trace_metadata": "identifies traces of the original",
        "job_status": "follows from the times and the error",
    },
    "task_workspace_apps": {"workspace_agent_id": "follows from the application"},
    "tasks": {"template_parameters": "the workspace's build has them"},
    "template_version_preset_parameters": {"id": _UNUSED},
    "template_version_presets": {"prebuild_status": "follows from the last builds of the preset"},
    "template_version_terraform_values": {"provisionerd_version": _UNUSED},
    "user_deleted": {"id": _UNUSED},
    "user_status_changes": {"id": _UNUSED},
    "users": {
        "hashed_one_time_passcode": "lives for 20 minutes; the user requests another one",
        "one_time_passcode_expires_at": "lives for 20 minutes; the user requests another one",
        "chat_spend_limit_micros": _SPEND,
    },
    "workspace_agent_memory_resource_monitors": {"created_at": _UNUSED, "updated_at": _UNUSED},
    "workspace_agent_volume_resource_monitors": {"created_at": _UNUSED, "updated_at": _UNUSED},
    "workspace_agent_stats": {"id": "this database numbers its own rows"},
    "workspace_agents": {
        "instance_metadata": "empty in this release",
        "resource_metadata": "empty in this release",
        "last_connected_replica_id": "replica of the original that the agent was connected to",
    },
    "workspace_app_stats": {"id": _UNUSED},
    "workspace_builds": {
        "notified_autostop_deadline": "a reminder of the next stop may be sent a second time",
    },
}
"""Columns that are not taken, of tables that are."""
