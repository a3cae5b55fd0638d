"""The built-in roles: actions on resources that each grants, by level.

Facts recorded from upstream v2.34 (`GET /users/roles`, `GET /organizations/{o}/members/roles`); the two implicit roles
(`member`, `organization-member`) are inferred from the recorded permission matrix. Pure data plus lookups;
`domain/access/policy.py` decides with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Grants = Mapping[str, frozenset[str]]
"""Resource type -> actions; `*` stands for every action, the resource `*` for every resource."""


@dataclass(frozen=True, slots=True)
class BuiltinRole:
    """Grants of one role. A level applies where its condition holds, see `policy.decide`."""

    name: str
    display_name: str = ""
    site: Grants = field(default_factory=dict)
    """Grants everywhere."""
    user: Grants = field(default_factory=dict)
    """Grants on objects the subject owns."""
    organization: Grants = field(default_factory=dict)
    """Grants on objects of the organization in which the role was assigned."""
    organization_denied: Grants = field(default_factory=dict)
    """Denials in that organization, whatever other organization roles grant."""
    member: Grants = field(default_factory=dict)
    """Grants on objects of that organization which the subject owns."""


def grants(text: str) -> dict[str, frozenset[str]]:
    """Parse `resource:action,action resource:*`."""
    result: dict[str, frozenset[str]] = {}
    for part in text.split():
        resource, _, actions = part.partition(":")
        result[resource] = frozenset(actions.split(","))
    return result


_AGENT_ACTIONS = "create_agent,delete_agent,update_agent"
_WORKSPACE = f"workspace:create,read,update,delete,start,stop,ssh,application_connect,share,{_AGENT_ACTIONS}"
_DORMANT = f"workspace_dormant:create,read,update,delete,stop,{_AGENT_ACTIONS}"
# Names are listed instead of `*`: a wildcard would include prebuilt and dormant workspaces.
_EVERYTHING = (
    "ai_model_price ai_provider aibridge_interception api_key assign_org_role audit_log chat connection_log "
    "crypto_key debug_info deployment_config deployment_stats file group group_member idpsync_settings "
    "inbox_notification license notification_message notification_preference notification_template oauth2_app "
    "oauth2_app_code_token oauth2_app_secret organization organization_member provisioner_daemon provisioner_jobs "
    "replicas system tailnet_coordinator task template user webpush_subscription workspace_agent_devcontainers "
    "workspace_agent_resource_monitor workspace_build_orchestration workspace_proxy"
).split()
_ALL = " ".join(f"{name}:*" for name in _EVERYTHING)

SITE_ROLES: dict[str, BuiltinRole] = {
    role.name: role
    for role in (
        BuiltinRole(
            "owner",
            "Owner",
            site=grants(
                f"{_ALL} assign_role:* ai_gateway_key:create,read,delete boundary_log:read "
                f"prebuilt_workspace:update,delete user_skill:read,delete {_WORKSPACE} {_DORMANT}"
            ),
        ),
        BuiltinRole(
            "auditor",
            "Auditor",
            site=grants(
                "aibridge_interception:read assign_org_role:read audit_log:read boundary_log:read "
                "connection_log:read deployment_config:read deployment_stats:read group:read group_member:read "
                "organization:read organization_member:read template:read,view_insights user:read"
            ),
        ),
        BuiltinRole(
            "template-admin",
            "Template Admin",
            site=grants(
                "assign_org_role:read file:create,read group:read group_member:read organization:read "
                "organization_member:read prebuilt_workspace:update,delete "
                "provisioner_daemon:create,read,update,delete "
                "template:create,read,update,delete,use,view_insights user:read workspace:read "
                "workspace_dormant:read"
            ),
        ),
        BuiltinRole(
            "user-admin",
            "User Admin",
            site=grants(
                "assign_org_role:read,assign,unassign assign_role:read,assign,unassign "
                "group:create,read,update,delete group_member:read idpsync_settings:read,update "
                "organization:read organization_member:create,read,update,delete "
                "user:create,read,update,delete,read_personal,update_personal"
            ),
        ),
        BuiltinRole(
            "member",
            "Member",
            site=grants("assign_role:read oauth2_app:read workspace_proxy:read"),
            user=grants(
                "api_key:* user:read,read_personal,update_personal user_secret:* user_skill:* "
                "inbox_notification:* notification_preference:* notification_message:* webpush_subscription:* "
                "oauth2_app_code_token:* chat:read crypto_key:read group_member:read organization_member:read"
            ),
        ),
    )
}

ORGANIZATION_ROLES: dict[str, BuiltinRole] = {
    role.name: role
    for role in (
        BuiltinRole(
            "organization-admin",
            "Organization Admin",
            site=grants("user:read"),
            organization=grants(
                " ".join(f"{name}:*" for name in _EVERYTHING if name != "workspace_build_orchestration")
                + " ai_gateway_key:* usage_event:* user_skill:* prebuilt_workspace:update,delete "
                f"workspace:create,read,update,delete,start,stop,share,{_AGENT_ACTIONS} {_DORMANT}"
            ),
        ),
        BuiltinRole(
            "organization-auditor",
            "Organization Auditor",
            organization=grants(
                "audit_log:read connection_log:read group:read group_member:read organization:read "
                "organization_member:read template:read,view_insights"
            ),
        ),
        BuiltinRole(
            "organization-user-admin",
            "Organization User Admin",
            site=grants("user:read"),
            organization=grants(
                "assign_org_role:read,assign,unassign group:create,read,update,delete group_member:read "
                "idpsync_settings:read,update organization:read organization_member:create,read,update,delete"
            ),
        ),
        BuiltinRole(
            "organization-template-admin",
            "Organization Template Admin",
            organization=grants(
                "file:create,read group:read group_member:read organization:read organization_member:read "
                "prebuilt_workspace:update,delete provisioner_daemon:create,read,update,delete "
                "provisioner_jobs:create,read,update template:create,read,update,delete,use,view_insights "
                "workspace:read workspace_dormant:read"
            ),
        ),
        BuiltinRole(
            "organization-workspace-creation-ban",
            "Organization Workspace Creation Ban",
            organization_denied=grants("workspace:create,delete,create_agent,delete_agent"),
        ),
        BuiltinRole(
            "organization-workspace-access",
            "Organization Workspace Access",
            member=grants(
                f"file:create,read provisioner_daemon:create,read task:create,read,update,delete "
                f"{_WORKSPACE} {_DORMANT}"
            ),
        ),
        BuiltinRole("agents-access", "Coder Agents User", member=grants("chat:create,read,share,update")),
        BuiltinRole(
            "organization-member",
            "",
            organization=grants("organization:read assign_org_role:read provisioner_jobs:read"),
            member=grants("organization_member:read group_member:read"),
        ),
    )
}

IMPLICIT_SITE_ROLE = "member"
IMPLICIT_ORGANIZATION_ROLE = "organization-member"


def display_name(name: str) -> str:
    """Return a built-in role's display name; an unknown name is returned unchanged."""
    role = SITE_ROLES.get(name) or ORGANIZATION_ROLES.get(name)
    return role.display_name if role else name
