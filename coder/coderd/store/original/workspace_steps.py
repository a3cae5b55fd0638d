"""Steps for workspaces, builds, resources, applications in use, tasks, proxies, and the OAuth2 provider."""

from __future__ import annotations

from coder.coderd.store.original.step import (
    Reason,
    Step,
    access_list,
    as_array,
    ascii_text,
    filled,
    known_time,
    known_user,
    milliseconds,
    other_actions,
    same,
    text,
)
from coder.domain.workspaces.workspaces import WORKSPACE_ROLES

# Lists of older releases lack the actions that administrators got later.
_ROLES = {"admin": {*WORKSPACE_ROLES["use"], "update"}, "use": WORKSPACE_ROLES["use"]}
"""Actions of an access list's roles, the highest first."""
_SHA256 = "octet_length(s.{}) = 32"

WORKSPACES = (
    Step(
        "workspaces",
        "workspaces s",
        same(
            "id created_at updated_at owner_id organization_id template_id name deleted autostart_schedule "
            "last_used_at dormant_at deleting_at next_start_at favorite",
            ttl_ms=milliseconds("ttl"),
            automatic_updates=text("automatic_updates"),
            user_acl=access_list("user_acl", _ROLES),
            group_acl=access_list("group_acl", _ROLES),
            latest_build_id="(SELECT b.id FROM workspace_builds b WHERE b.workspace_id = s.id "
            "ORDER BY b.build_number DESC LIMIT 1)",
        ),
        cursor="id",
        changes=other_actions(_ROLES, "s.name"),
    ),
    Step(
        "workspace_builds",
        "workspace_builds s JOIN provisioner_jobs j ON j.id = s.job_id",
        same(
            "id created_at updated_at workspace_id template_version_id build_number job_id "
            "provisioner_state daily_cost template_version_preset_id has_ai_task has_external_agent",
            transition=text("transition"),
            reason=text("reason"),
            log_level="COALESCE(j.input ->> 'log_level', '')",
            initiator_id=known_user("initiator_id"),
            granted_cost="s.daily_cost",
            deadline=known_time("deadline"),
            max_deadline=known_time("max_deadline"),
            ai_task_app_id="(SELECT a.workspace_app_id FROM task_workspace_apps a JOIN tasks t ON t.id = a.task_id "
            "WHERE t.workspace_id = s.workspace_id AND a.workspace_build_number = s.build_number LIMIT 1)",
        ),
        cursor="id",
        batch=16,
    ),
    Step("workspace_build_parameters", "workspace_build_parameters s", same("workspace_build_id name value")),
    Step(
        "workspace_resources",
        "workspace_resources s",
        same(
            "id created_at job_id type name hide icon daily_cost",
            transition=text("transition"),
            instance_type=filled("instance_type"),
            module_path=filled("module_path"),
            metadata="COALESCE((SELECT jsonb_agg(jsonb_build_object('key', m.key, 'value', COALESCE(m.value, ''), "
            "'sensitive', m.sensitive) ORDER BY m.id) FROM workspace_resource_metadata m "
            "WHERE m.workspace_resource_id = s.id), '[]'::jsonb)",
        ),
        cursor="id",
    ),
    Step(
        "workspace_port_shares",
        "workspace_agent_port_share s",
        same("workspace_id agent_name port", share_level=text("share_level"), protocol=text("protocol")),
    ),
)
"""Everything that agents need."""

OTHERS = (
    Step(
        "tasks",
        "tasks s",
        same(
            "id organization_id owner_id name display_name workspace_id template_version_id prompt "
            "created_at deleted_at"
        ),
    ),
    Step(
        "task_snapshots",
        "task_snapshots s",
        same(
            "task_id",
            messages=as_array("(s.log_snapshot #> '{data,messages}')"),
            created_at="s.log_snapshot_created_at",
        ),
    ),
    Step(
        "connection_logs",
        "connection_logs s",
        same(
            "id connect_time organization_id workspace_owner_id workspace_id workspace_name agent_name code user_agent "
            "user_id slug_or_port connection_id disconnect_time disconnect_reason",
            type=text("type"),
            ip="COALESCE(host(s.ip), '')",
        ),
        cursor="id",
    ),
    Step(
        "workspace_proxies",
        "workspace_proxies s",
        same(
            "id name display_name icon url wildcard_hostname derp_enabled derp_only version deleted created_at "
            "updated_at region_id",
            hashed_secret="s.token_hashed_secret",  # noqa: S106 (an expression)
        ),
    ),
    Step(
        "oauth2_provider_apps",
        "oauth2_provider_apps s",
        same(
            "id created_at updated_at name icon callback_url",
            redirect_uris=filled("redirect_uris", "'{}'"),
            public_client="(COALESCE(s.client_type, '') = 'public' OR "
            "COALESCE(s.token_endpoint_auth_method, '') = 'none')",
            registration="CASE WHEN s.dynamically_registered THEN jsonb_strip_nulls(jsonb_build_object("
            "'client_name', s.name, 'client_uri', s.client_uri, 'contacts', to_jsonb(s.contacts), 'jwks', s.jwks, "
            "'jwks_uri', s.jwks_uri, 'logo_uri', s.logo_uri, 'policy_uri', s.policy_uri, 'scope', s.scope, "
            "'software_id', s.software_id, 'software_version', s.software_version, 'tos_uri', s.tos_uri, "
            "'grant_types', to_jsonb(COALESCE(s.grant_types, '{authorization_code,refresh_token}')), "
            "'response_types', to_jsonb(COALESCE(s.response_types, '{code}')), "
            "'token_endpoint_auth_method', COALESCE(s.token_endpoint_auth_method, 'client_secret_basic'), "
            "'redirect_uris', to_jsonb(COALESCE(NULLIF(s.redirect_uris, '{}'), ARRAY[s.callback_url])))) END",
            registration_token_hash="CASE WHEN s.dynamically_registered AND "
            f"{_SHA256.format('registration_access_token')} THEN s.registration_access_token END",
        ),
    ),
    Step(
        "oauth2_provider_app_secrets",
        "oauth2_provider_app_secrets s",
        same("id app_id created_at last_used_at hashed_secret display_secret", prefix=ascii_text("secret_prefix")),
        where=_SHA256.format("hashed_secret"),
        left_out="secrets hashed by an older release of the original; create new ones for their applications",
    ),
    Step(
        "oauth2_provider_app_tokens",
        "oauth2_provider_app_tokens s JOIN oauth2_provider_app_secrets c ON c.id = s.app_secret_id "
        "JOIN api_keys k ON k.id = s.api_key_id",
        same(
            "api_key_id user_id expires_at app_secret_id",
            prefix=ascii_text("hash_prefix"),
            hashed_secret="s.refresh_hash",  # noqa: S106
            app_id="c.app_id",
            scopes="k.scopes::text[]",
        ),
        where=f"{_SHA256.format('refresh_hash')} AND octet_length(c.hashed_secret) = 32",
        changes=(
            Reason(
                "COALESCE(s.audience, '') <> ''",
                "the token is bound to a resource; here it is valid for this server, whatever the resource is",
                "s.audience",
            ),
        ),
        left_out="tokens hashed by an older release of the original; their users authorize the application again",
    ),
)
