"""The table of field rules: every bound on both sides, and every request that an endpoint reads."""

from __future__ import annotations

import ast
import functools
import importlib
import types
import typing
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
import pytest

from coder.api.field_rules.own_sentences import OWN
from coder.api.field_rules.rules import FieldRule
from coder.api.field_rules.table import CHANGES, NEW, TABLE, faults
from coder.api.people.user_secrets import CreateUserSecretRequest
from coder.coderd.http.server.json import with_zeros
from tests.kit.paths import ROOT

_REASONS = {
    "a program of one version with the server says it, and the service looks at it": """
        AgentVitals.events AgentVitals.disk_used AgentVitals.disk_total AgentVitals.memory_used AgentVitals.memory_total
        AgentVitals.memory_pressure AgentVitals.load AgentVitals.cores AgentVitals.uptime_s AgentVitals.direct
        AgentVitals.relayed RegisterWorkspaceProxyRequest.access_url RegisterWorkspaceProxyRequest.wildcard_hostname
        RegisterWorkspaceProxyRequest.replica_hostname RegisterWorkspaceProxyRequest.replica_error
        RegisterWorkspaceProxyRequest.replica_relay_address RegisterWorkspaceProxyRequest.version
        IssueTokenRequest.app_request IssueTokenRequest.session_token IssueTokenRequest.path_app_base_url
        IssueTokenRequest.app_hostname IssueTokenRequest.app_path IssueTokenRequest.app_query MayStayRequest.app_request
        MayStayRequest.key_id
        ReportAppStatsRequest.stats _AppStatus.app_slug _AppStatus.state _AppStatus.message _AppStatus.uri _Logs.logs
        _Source.display_name _Source.icon""",
    "a credential: an invalid one is unauthenticated (401)": """
        _AwsIdentity.signature _AwsIdentity.document _AwsIdentity.agent_name _AzureIdentity.signature
        _AzureIdentity.encoding _AzureIdentity.agent_name _GoogleIdentity.json_web_token _GoogleIdentity.agent_name
        UpdateUserPasswordRequest.old_password IssueReconnectingPTYSignedTokenRequest.url
        IssueReconnectingPTYSignedTokenRequest.agentID""",
    "names what there is: it is looked up": """
        CreateUserRequestWithOrgs.login_type CreateUserRequestWithOrgs.user_status
        CreateUserRequestWithOrgs.organization_ids CreateUserRequestWithOrgs.roles UpdateRoles.roles
        UpdateOrganizationRequest.default_org_member_roles PatchGroupRequest.add_users PatchGroupRequest.remove_users
        AclChange.user_perms AclChange.group_perms UpdateWorkspaceACL.group_roles UpdateWorkspaceACL.user_roles
        UpdateUserNotificationPreferences.template_disabled_map DismissRequest.dismissed_healthchecks
        AuthorizationRequest.checks DebugProfileOptions.Profiles PostWorkspaceUsageRequest.app_name
        DeleteWebpushSubscription.endpoint DeleteWorkspaceAgentPortShareRequest.agent_name
        DeleteWorkspaceAgentPortShareRequest.port UpsertWorkspaceAgentPortShareRequest.agent_name
        RoleSpec.site_permissions RoleSpec.user_permissions RoleSpec.organization_permissions
        RoleSpec.organization_member_permissions TemplateBuilderComposeRequest.base_template_id
        TemplateBuilderComposeRequest.modules TemplateBuilderCreateTemplateRequest.modules""",
    "is tried: a push service or its library says what is wrong with it": """
        WebpushSubscription.endpoint WebpushSubscription.auth_key WebpushSubscription.p256dh_key""",
    "the template says which values are good": """
        CreateWorkspaceRequest.rich_parameter_values CreateWorkspaceBuildRequest.rich_parameter_values
        CreateWorkspaceBuildRequest.on_success CreateTemplateVersionDryRunRequest.workspace_name
        CreateTemplateVersionDryRunRequest.rich_parameter_values
        CreateTemplateVersionDryRunRequest.user_variable_values CreateTemplateVersionRequest.user_variable_values
        DynamicParametersRequest.id DynamicParametersRequest.inputs TemplateBuilderComposeRequest.base_variable_values
        TemplateBuilderCreateTemplateRequest.base_variable_values CreateUpdatePreviewRequest.rich_parameter_values""",
    "its service answers together with what there is, and has tests of its own": """
        CreateTemplateRequest.max_port_share_level CreateTemplateRequest.cors_behavior
        CreateTemplateRequest.activity_bump_ms CreateTemplateRequest.autostart_requirement
        CreateTemplateRequest.autostop_requirement CreateTemplateRequest.default_ttl_ms
        CreateTemplateRequest.delete_ttl_ms CreateTemplateRequest.dormant_ttl_ms CreateTemplateRequest.failure_ttl_ms
        CreateTemplateRequest.time_til_autostop_notify_ms UpdateTemplateMeta.activity_bump_ms
        UpdateTemplateMeta.autostart_requirement UpdateTemplateMeta.autostop_requirement
        UpdateTemplateMeta.cors_behavior UpdateTemplateMeta.default_ttl_ms UpdateTemplateMeta.failure_ttl_ms
        UpdateTemplateMeta.max_port_share_level UpdateTemplateMeta.time_til_autostop_notify_ms
        UpdateTemplateMeta.time_til_dormant_autodelete_ms UpdateTemplateMeta.time_til_dormant_ms
        CreateUserRequestWithOrgs.password CreateTaskRequest.name CreateTaskRequest.input TaskSendRequest.input
        CreateWorkspaceRequest.automatic_updates CreateWorkspaceRequest.autostart_schedule CreateWorkspaceRequest.ttl_ms
        CreateTemplateVersionRequest.tags RoleSpec.name TemplateBuilderCreateTemplateRequest.provisioner_tags
        TemplateBuilderSessionRequest.session_id TemplateBuilderSessionRequest.event_type
        UpdateAppearanceConfig.service_banner UpdateAppearanceConfig.announcement_banners
        GroupSyncChange.mapping GroupSyncChange.regex_filter PatchGroupIDPSyncConfigRequest.regex_filter
        OrganizationSyncChange.mapping RoleSyncChange.mapping MappingChange.add MappingChange.remove
        CreateTemplateRollout.stages CreateTemplateRollout.failure_percent CreateTemplateRollout.minimum_builds
        UpdateTemplateRollout.percent""",
    "judged as part of the whole secret it would make: CreateUserSecretRequest": """
        UpdateUserSecretRequest.env_name UpdateUserSecretRequest.file_path UpdateUserSecretRequest.value""",
    "a number whose every value is good, or is cut to what the deployment allows": """
        DebugProfileOptions.Duration CreateGroupRequest.quota_allowance PatchGroupRequest.quota_allowance""",
    "a text for people, or an address they see: every one is good": """
        CreateFirstUserRequest.trial_info CreateFirstUserRequest.onboarding_info CreateGroupRequest.avatar_url
        PatchGroupRequest.avatar_url CreateOrganizationRequest.description CreateOrganizationRequest.icon
        UpdateOrganizationRequest.description UpdateOrganizationRequest.icon CreateTaskRequest.display_name
        TemplateBuilderCreateTemplateRequest.icon CreateTemplateRequest.icon UpdateTemplateMeta.icon
        UpdateTemplateMeta.description
        UpdateTemplateMeta.deprecation_message CreateUserSecretRequest.description UpdateUserSecretRequest.description
        CreateWorkspaceProxyRequest.display_name CreateWorkspaceProxyRequest.icon PatchWorkspaceProxy.display_name
        PatchWorkspaceProxy.icon PostOAuth2ProviderAppRequest.icon PutOAuth2ProviderAppRequest.icon CspReport.csp-report
        UpdateAppearanceConfig.application_name UpdateAppearanceConfig.logo_url UpdateUserProfileRequest.avatar_url
        UpdateTaskInputRequest.input RoleSpec.display_name CreateTokenRequest.token_name
        UpdateUserAppearanceSettingsRequest.theme_mode UpdateUserAppearanceSettingsRequest.theme_light
        UpdateUserAppearanceSettingsRequest.theme_dark CreateTestAuditLogRequest.additional_fields""",
    "of an event that nothing keeps": """
        TemplateBuilderSessionRequest.base_template_id TemplateBuilderSessionRequest.duration_seconds
        TemplateBuilderSessionRequest.module_ids""",
    "the name of a provider's claim: every one is good, and none turns it off": """
        GroupSyncChange.field PatchGroupIDPSyncConfigRequest.field OrganizationSyncChange.field
        PatchOrganizationIDPSyncConfigRequest.field RoleSyncChange.field PatchRoleIDPSyncConfigRequest.field""",
    "another name is refused: the old mapping of groups is read only": "GroupSyncChange.legacy_group_name_mapping",
}
FREE = {field: reason for reason, fields in _REASONS.items() for field in fields.split()}
"""Fields without a rule, each with its reason."""

_ABSENT = (type(None), msgspec.UnsetType)
_VALIDATED_TYPES = (bool, UUID, datetime)
"""Types that a decoder validates completely: every decoded value is valid. The same holds for enumerations."""


def cases() -> Iterator[tuple[type[msgspec.Struct], str, FieldRule[Any]]]:
    for kind, fields in TABLE.items():
        for name, rules in fields.items():
            for rule in rules:
                yield kind, name, rule


def request_with(kind: type[msgspec.Struct], **fields: Any) -> Any:
    """Return a request that is valid except for `fields`."""
    valid = {name: rules[-1].inside[-1] for name, rules in TABLE[kind].items() if rules}
    one_of_two = {"template_id", "example_id"} & set(kind.__struct_fields__)
    others = dict.fromkeys(one_of_two - set(fields), "11111111-1111-4111-8111-111111111111")
    document = msgspec.to_builtins(others | valid | fields)
    return msgspec.convert(with_zeros(document, kind), kind)


@pytest.mark.parametrize(
    ("kind", "field", "rule"), list(cases()), ids=lambda item: getattr(item, "__name__", str(item))[:40]
)
def test_bounds_have_two_sides(kind: type[msgspec.Struct], field: str, rule: FieldRule[Any]) -> None:
    rules: tuple[FieldRule[Any], ...] = TABLE[kind][field]
    for value in rule.inside:
        if all(other.holds(value) for other in rules):
            assert faults(request_with(kind, **{field: value})) == [], value
    for value in rule.outside:
        body = request_with(kind, **{field: value})
        (fault,) = faults(body)
        broken = next(other for other in rules if not other.holds(value))
        assert (fault.field, fault.message, fault.listed) == (field, broken.message, broken.listed)
        if broken.says is None:
            assert f'"{broken.tag}"' in fault.detail and fault.detail.endswith(f'with value: "{value}"')
        else:
            assert fault.detail == broken.says(value) != ""
        if kind in CHANGES:
            assert faults(body, {field: getattr(body, field)}) == [], "what is there already is never refused"


def test_several_faults_are_reported_in_order() -> None:
    for kind, fields in TABLE.items():
        wrong = {name: rules[-1].outside[0] for name, rules in fields.items() if rules}
        assert [fault.field for fault in faults(request_with(kind, **wrong))] == list(wrong), kind


def _read_by_doors() -> set[type[msgspec.Struct]]:
    results: set[type[msgspec.Struct]] = set()
    for path in sorted((ROOT / "coder" / "coderd" / "http").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "read_body" and path.name != "json.py":
                module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
                kind: Any = functools.reduce(getattr, ast.unparse(node.args[0]).split("."), module)
                results.add(kind)
    return results


def _validated_by_type(hint: Any) -> bool:
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    options = [arg for arg in (typing.get_args(hint) if union else (hint,)) if arg not in _ABSENT]
    return all(option in _VALIDATED_TYPES or typing.get_origin(option) is typing.Literal for option in options)


def test_every_field_has_rule_or_reason() -> None:
    """Every request that an endpoint reads; fields validated by their type need neither."""
    without = set()
    for kind in _read_by_doors():
        hints = typing.get_type_hints(kind)
        for field in msgspec.structs.fields(kind):
            if field.name not in TABLE.get(kind, {}) and not _validated_by_type(hints[field.name]):
                without.add(f"{kind.__name__}.{field.encode_name}")
    assert without == FREE.keys(), without ^ FREE.keys()


def test_requests_are_checked_once() -> None:
    assert not NEW.keys() & CHANGES.keys() and not OWN.keys() & (NEW.keys() | CHANGES.keys())
    assert TABLE.keys() <= _read_by_doors() | {CreateUserSecretRequest}
