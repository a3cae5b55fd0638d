"""Kinds of objects and the actions on each: the vocabulary of roles, scopes and permission checks.

Taken from the names of upstream's key scopes (`coder/api/access/scopes.py`, v2.34). Pure data.
"""

from __future__ import annotations

_ROWS = """
ai_gateway_key: create, delete, read, update
ai_model_price: read, update
ai_provider: create, delete, read, update
ai_seat: create, read
aibridge_interception: create, read, update
api_key: create, delete, read, update
assign_org_role: assign, create, delete, read, unassign, update
assign_role: assign, read, unassign
audit_log: create, read
boundary_log: create, delete, read
boundary_usage: delete, read, update
chat: create, delete, read, share, update
connection_log: read, update
crypto_key: create, delete, read, update
debug_info: read
deployment_config: read, update
deployment_stats: read
file: create, read
group: create, delete, read, update
group_member: read
idpsync_settings: read, update
inbox_notification: create, read, update
license: create, delete, read
mcp_server_config: create, delete, read, share, update
notification_message: create, delete, read, update
notification_preference: read, update
notification_template: read, update
oauth2_app: create, delete, read, update
oauth2_app_code_token: create, delete, read
oauth2_app_secret: create, delete, read, update
organization: create, delete, read, update
organization_member: create, delete, read, update
prebuilt_workspace: delete, update
provisioner_daemon: create, delete, read, update
provisioner_jobs: create, read, update
replicas: read
system: create, delete, read, update
tailnet_coordinator: create, delete, read, update
task: create, delete, read, update
template: create, delete, read, update, use, view_insights
usage_event: create, read, update
user: create, delete, read, read_personal, update, update_personal
user_secret: create, delete, read, update
user_skill: create, delete, read, update
webpush_subscription: create, delete, read
workspace: WORK, share, start
workspace_agent_devcontainers: create
workspace_agent_resource_monitor: create, read, update
workspace_build_orchestration: create, delete, read, update
workspace_dormant: WORK, share, start
workspace_proxy: create, delete, read, update
"""

_WORK = "application_connect, create, create_agent, delete, delete_agent, read, ssh, stop, update, update_agent"

ACTIONS: dict[str, frozenset[str]] = {
    kind: frozenset(actions.replace("WORK", _WORK).split(", "))
    for kind, _, actions in (line.partition(": ") for line in _ROWS.split("\n") if line)
}
"""Kind -> actions."""
