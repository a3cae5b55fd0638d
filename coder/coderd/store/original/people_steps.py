"""Steps for organizations, users and what belongs to a user: links, keys, roles, groups, settings."""

from __future__ import annotations

from coder.coderd.store.original.step import (
    Reason,
    Step,
    ascii_text,
    denies,
    filled,
    grants,
    is_malformed,
    known_time,
    permissions,
    same,
    text,
)
from coder.domain.access.roles import ORGANIZATION_ROLES, SITE_ROLES

_APPEARANCE = "'theme_preference', 'theme_mode', 'theme_light', 'theme_dark', 'terminal_font'"
_PREFERENCES = (
    "'preference_task_notification_alert_dismissed', 'preference_thinking_display_mode', "
    "'preference_shell_tool_display_mode', 'preference_code_diff_display_mode', 'preference_agent_chat_send_shortcut'"
)

_LEVELS = ("org_permissions", "member_permissions", "user_permissions", "site_permissions")
# Without its denial a role would grant more than at the original.
_REFUSED_ROLES = Reason(
    f"{denies(*_LEVELS[1:])} OR {is_malformed(*_LEVELS)}",
    "the role denies permissions of members, users or the site, or has a permission that cannot be read; roles deny "
    "only permissions of an organization here, so check what its holders' other roles grant",
    "s.name",
)
_CUSTOM_ROLES = (
    "SELECT s.name, s.organization_id FROM custom_roles s WHERE NOT s.is_system "  # noqa: S608
    f"AND s.organization_id IS NOT NULL AND NOT ({_REFUSED_ROLES.condition})"
)


def _unknown_roles(roles: str, organization: str, name: str) -> Reason:
    """Return the reason for rows with roles that neither this program nor the organization has afterwards."""
    built_in = ", ".join(repr(role) for role in sorted(ORGANIZATION_ROLES if organization else SITE_ROLES))
    others = f" AND (r, {organization}) NOT IN ({_CUSTOM_ROLES})" if organization else ""
    return Reason(
        f"EXISTS (SELECT FROM unnest({roles}) r WHERE r NOT IN ({built_in}){others})",
        "it names roles that do not exist here, which neither grant nor deny",
        name,
    )


STEPS = (
    Step(
        "organizations",
        "organizations s",
        same(
            "id name display_name description icon created_at updated_at is_default deleted",
            default_member_roles="s.default_org_member_roles",
            workspace_sharing=text("shareable_workspace_owners"),
        ),
        changes=(_unknown_roles("s.default_org_member_roles", "s.id", "s.name"),),
    ),
    Step(
        "users",
        "users s",
        same(
            "id email username name avatar_url created_at updated_at rbac_roles quiet_hours_schedule "
            "github_com_user_id is_system is_service_account deleted",
            hashed_password=ascii_text("hashed_password"),
            last_seen_at="s.last_seen_at AT TIME ZONE 'UTC'",
            status=text("status"),
            login_type=text("login_type"),
        ),
        cursor="id",
        # A trigger has written each user's present status; the next steps bring the history.
        after_batch="DELETE FROM user_status_changes WHERE user_id IN (SELECT id FROM import_batch)",
        changes=(_unknown_roles("s.rbac_roles", "", "s.username"),),
    ),
    Step(
        "user_status_changes",
        "user_status_changes s",
        same("user_id changed_at", status=text("new_status")),
        natural_key=("user_id", "changed_at", "status"),
    ),
    Step(
        "user_status_changes",
        "user_deleted s",
        same("user_id", changed_at="s.deleted_at", status="'deleted'"),
        name="user_deleted",
        natural_key=("user_id", "changed_at", "status"),
    ),
    Step(
        "user_links",
        "user_links s",
        same(
            "user_id linked_id oauth_access_token oauth_refresh_token",
            login_type=text("login_type"),
            oauth_expiry=known_time("oauth_expiry"),
            claims="s.claims",
        ),
        sealed={
            "oauth_access_token": "s.oauth_access_token_key_id",
            "oauth_refresh_token": "s.oauth_refresh_token_key_id",
        },
    ),
    Step(
        "external_auth_links",
        "external_auth_links s",
        same(
            "provider_id user_id created_at updated_at",
            access_token="s.oauth_access_token",  # noqa: S106 (an expression)
            refresh_token="s.oauth_refresh_token",  # noqa: S106
            expires_at=known_time("oauth_expiry"),
            extra="s.oauth_extra",
        ),
        sealed={"access_token": "s.oauth_access_token_key_id", "refresh_token": "s.oauth_refresh_token_key_id"},
    ),
    Step(
        "user_configs",
        "user_configs s",
        same(
            "user_id value",
            key=f"CASE WHEN s.key IN ({_APPEARANCE}) THEN 'appearance.' || s.key "
            "ELSE 'preferences.' || substr(s.key, length('preference_') + 1) END",
        ),
        where=f"s.key IN ({_APPEARANCE}, {_PREFERENCES})",
        left_out="settings of pages that this server does not have",
    ),
    Step(
        "organization_members",
        "organization_members s",
        same("organization_id user_id created_at updated_at roles"),
        changes=(
            _unknown_roles(
                "s.roles", "s.organization_id", "COALESCE((SELECT u.username FROM users u WHERE u.id = s.user_id), '')"
            ),
        ),
    ),
    Step(
        "custom_roles",
        "custom_roles s",
        same(
            "id organization_id name display_name created_at updated_at",
            permissions="jsonb_build_object("
            f"'organization', {permissions('org_permissions', negate=False)}, "
            f"'organization_denied', {permissions('org_permissions', negate=True)}, "
            f"'member', {permissions('member_permissions', negate=False)}, "
            f"'site', {permissions('site_permissions', negate=False)})",
        ),
        where="NOT s.is_system",
        left_out="system roles, which are built in",
        refusal=_REFUSED_ROLES,
        changes=(
            Reason(
                grants("user_permissions", "site_permissions"),
                "the role grants permissions of users or the site, which roles of an organization do not grant here",
                "s.name",
            ),
        ),
    ),
    Step(
        "groups",
        "groups s",
        same("id organization_id name display_name avatar_url quota_allowance", source=text("source")),
    ),
    Step("group_members", "group_members s", same("group_id user_id")),
    Step(
        "api_keys",
        "api_keys s",
        same(
            "id user_id hashed_secret last_used expires_at created_at updated_at lifetime_seconds token_name "
            "allow_list",
            login_type=text("login_type"),
            ip_address="host(s.ip_address)",
            scopes="s.scopes::text[]",
        ),
        cursor="id",
    ),
    Step(
        "git_ssh_keys",
        "gitsshkeys s",
        same("user_id created_at updated_at private_key public_key"),
        sealed={"private_key": "s.private_key_key_id"},
    ),
    Step(
        "user_secrets",
        "user_secrets s",
        same("id user_id name description env_name file_path enabled value created_at updated_at"),
        sealed={"value": "s.value_key_id"},
    ),
    Step("user_skills", "user_skills s", same("id user_id name description content created_at updated_at")),
    Step(
        "webpush_subscriptions",
        "webpush_subscriptions s",
        same("id user_id created_at endpoint", p256dh_key="s.endpoint_p256dh_key", auth_key="s.endpoint_auth_key"),
    ),
    Step(
        "notification_preferences",
        "notification_preferences s",
        same("user_id disabled updated_at", template_id="s.notification_template_id"),
    ),
    Step(
        "notification_methods",
        "notification_templates s",
        same("", template_id="s.id", method=text("method")),
        where="s.method IS NOT NULL AND s.kind = 'system'",
        left_out="texts of messages, which are built in, and templates without a method of their own",
    ),
    Step(
        "inbox_notifications",
        "inbox_notifications s",
        same(
            "id user_id template_id title content icon actions read_at created_at",
            targets="COALESCE(s.targets::text[], '{}')",
        ),
        cursor="id",
    ),
    Step(
        "audit_logs",
        "audit_logs s",
        same(
            "id time user_id organization_id resource_id resource_target resource_icon diff status_code "
            "additional_fields request_id",
            ip="COALESCE(host(s.ip), '')",
            user_agent=filled("user_agent"),
            resource_type=text("resource_type"),
            action=text("action"),
        ),
        cursor="id",
    ),
)
