"""The table of field rules: every bound on both sides, and the table knows every request that a door reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from coder.api.field_rules import CHANGES, NEW, TABLE, faults
from coder.coderd.http.server.json import with_zeros
from coder.domain.foundation.field_rules import FieldRule
from tests.kit.paths import ROOT

FREE = {
    # agents and workspace proxies: programs of one version with the server; their services look at what they say
    "_Logs", "_Source", "AgentVitals", "_AppStatus", "_AwsIdentity", "_AzureIdentity", "_GoogleIdentity",
    "RegisterWorkspaceProxyRequest", "DeregisterWorkspaceProxyRequest", "IssueTokenRequest", "ReportAppStatsRequest",
    "MayStayRequest",
    "IssueReconnectingPTYSignedTokenRequest",
    # switches, and lists whose every value is good or is looked up
    "PrebuildsSettings", "UpdateWorkspaceDormancy", "ReadStatus", "NotificationsSettings", "OAuth2ProviderSettings",
    "OAuth2LegacyClient",
    "DismissRequest", "DebugProfileOptions", "ParkProvisionerJobRequest", "ArchiveTemplateVersionsRequest", "CspReport",
    "UpdateUserNotificationPreferences", "DynamicParametersRequest", "CreateTemplateVersionDryRunRequest",
    "PostWorkspaceUsageRequest", "WebpushSubscription", "DeleteWebpushSubscription", "UpdateRoles", "RoleSpec",
    "AuthorizationRequest", "UpdateWorkspaceACL", "AclChange", "UpdateAppearanceConfig", "UpdateTaskInputRequest",
    "TaskSendRequest", "GroupSyncChange", "PatchGroupIDPSyncConfigRequest",
    "MappingChange", "RoleSyncChange", "PatchRoleIDPSyncConfigRequest", "OrganizationSyncChange",
    "PatchOrganizationIDPSyncConfigRequest", "UpdateUserPreferenceSettingsRequest", "CreateTestAuditLogRequest",
    # answered with a message of their own, by their services
    "UpdateWorkspaceAutostartRequest", "UpdateWorkspaceTTLRequest", "_Extension", "CreateTokenRequest",
    "UpdateWorkspaceAutomaticUpdatesRequest", "UpsertWorkspaceAgentPortShareRequest", "CustomNotificationRequest",
    "DeleteWorkspaceAgentPortShareRequest", "UpdateNotificationTemplateMethod", "CreateWireguardClientRequest",
    "CreateProvisionerKeyRequest", "CreateUserSecretRequest", "ImportRequest", "UpdateUserSecretRequest",
    "UpdateWorkspaceBuildStateRequest",
    "UpdateUserQuietHoursScheduleRequest", "CreateUserSkillRequest", "UpdateUserSkillRequest",
}  # fmt: skip
"""Requests without field rules."""


def cases() -> Iterator[tuple[type[msgspec.Struct], str, FieldRule]]:
    for kind, fields in TABLE.items():
        for name, rules in fields.items():
            for rule in rules:
                yield kind, name, rule


def request_with(kind: type[msgspec.Struct], **fields: Any) -> Any:
    """A request that is fine but for `fields`."""
    good = {name: rules[-1].inside[-1] for name, rules in TABLE[kind].items() if rules}
    one_of_two = {"template_id", "example_id"} & set(kind.__struct_fields__)
    given = dict.fromkeys(one_of_two - set(fields), "11111111-1111-4111-8111-111111111111")
    document = msgspec.to_builtins(given | good | fields)
    return msgspec.convert(with_zeros(document, kind), kind)


@pytest.mark.parametrize(
    ("kind", "field", "rule"), list(cases()), ids=lambda one: getattr(one, "__name__", str(one))[:40]
)
def test_a_bound_has_two_sides(kind: type[msgspec.Struct], field: str, rule: FieldRule) -> None:
    rules = TABLE[kind][field]
    for value in rule.inside:
        if all(other.holds(value) for other in rules):
            assert faults(request_with(kind, **{field: value})) == [], value
    assert rule.outside
    for value in rule.outside:
        body = request_with(kind, **{field: value})
        ((name, detail),) = faults(body)
        assert name == field and detail.endswith(f'with value: "{value}"')
        assert f'"{next(other.tag for other in rules if not other.holds(value))}"' in detail
        if kind in CHANGES:
            assert faults(body, {field: getattr(body, field)}) == [], "what is there already is never refused"


def test_several_mistakes_are_told_together_in_order() -> None:
    for kind, fields in TABLE.items():
        wrong = {name: rules[-1].outside[0] for name, rules in fields.items() if rules}
        assert [name for name, _ in faults(request_with(kind, **wrong))] == list(wrong), kind


def test_every_request_has_its_place() -> None:
    """A door reads no body that is neither in the table nor known to need no rules."""
    read = set()
    for path in sorted((ROOT / "coder" / "coderd" / "http").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "read_body" and path.name != "json.py":
                kind = node.args[0]
                read.add(kind.attr if isinstance(kind, ast.Attribute) else getattr(kind, "id", ""))
    known = {kind.__name__ for kind in TABLE}
    assert read - known <= FREE and not FREE & known
    assert not NEW.keys() & CHANGES.keys()
