"""Sync of organizations, groups and roles from identity providers; sharing of workspaces."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.base.refusals import Invalid
from coder.api.login.oauth2 import (
    GroupSyncSettings,
    OrganizationSyncSettings,
    PatchGroupIDPSyncConfigRequest,
    PatchOrganizationIDPSyncConfigRequest,
    PatchRoleIDPSyncConfigRequest,
    RoleSyncSettings,
)
from coder.api.workspaces.workspace_settings import UpdateWorkspaceSharingSettingsRequest, WorkspaceSharingSettings
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.json import read_body, reply
from coder.coderd.http.server.query import Query
from coder.coderd.http.server.route import route
from coder.coderd.services.access.authorization import require
from coder.coderd.services.foundation.context import Context
from coder.coderd.services.login import provider_claims
from coder.coderd.services.people import organization_settings as settings
from coder.coderd.services.people import workspace_sharing
from coder.coderd.services.people.organization_settings import (
    GroupSyncChange,
    MappingChange,
    OrganizationSyncChange,
    RoleSyncChange,
    changed_mapping,
    clean_mapping,
)
from coder.coderd.services.people.organizations import OrganizationRow, organization_resource, resolve_organization
from coder.domain.access.policy import Subject

blueprint = Blueprint("organization_settings", __name__, url_prefix="/api/v2")

_ORGANIZATION = "/organizations/<organization>/settings"


async def _writable(organization: str) -> OrganizationRow:
    """Return the organization if the caller may change its sync settings: checked before the body is read."""
    row = await resolve_organization(context(), subject(), organization)
    settings.require_sync(subject(), "update", row)
    return row


# ---- groups


async def _group_sync(ctx: Context, subject: Subject, organization: str) -> GroupSyncSettings:
    return await settings.group_sync(ctx, subject, await resolve_organization(ctx, subject, organization))


@route(blueprint, "GET", f"{_ORGANIZATION}/idpsync/groups", scope="idpsync_settings:read", answers=GroupSyncSettings)
async def get_group_sync(organization: str) -> Response:
    return reply(await _group_sync(context(), subject(), organization))


@route(
    blueprint,
    "PATCH",
    f"{_ORGANIZATION}/idpsync/groups",
    scope="idpsync_settings:update",
    body=GroupSyncChange,
    answers=GroupSyncSettings,
    audit=Audited("idp_sync_settings_group", "write", "", "Organization Group Sync", organization_settings=_group_sync),
)
async def patch_group_sync(organization: str) -> Response:
    row = await _writable(organization)
    body = await read_body(GroupSyncChange)
    if body.legacy_group_name_mapping:
        raise Invalid(
            "Unexpected field 'legacy_group_name_mapping'. Field not allowed, set to null or remove it.",
            "legacy_group_name_mapping is deprecated, use mapping instead",
            [("legacy_group_name_mapping", "field is not allowed")],
        )
    new_settings = GroupSyncSettings(
        field=body.field,
        mapping=clean_mapping(body.mapping),
        regex_filter=body.regex_filter,
        auto_create_missing_groups=body.auto_create_missing_groups,
    )
    return reply(await settings.change_group_sync(context(), subject(), row, lambda _: new_settings))


@route(
    blueprint,
    "PATCH",
    f"{_ORGANIZATION}/idpsync/groups/config",
    scope="idpsync_settings:update",
    body=PatchGroupIDPSyncConfigRequest,
    answers=GroupSyncSettings,
    audit=Audited("idp_sync_settings_group", "write", "", "Organization Group Sync", organization_settings=_group_sync),
)
async def patch_group_sync_config(organization: str) -> Response:
    row = await _writable(organization)
    body = await read_body(PatchGroupIDPSyncConfigRequest)

    def change(stored: GroupSyncSettings) -> GroupSyncSettings:
        return GroupSyncSettings(
            field=body.field,
            mapping=stored.mapping,
            regex_filter=body.regex_filter,
            auto_create_missing_groups=body.auto_create_missing_groups,
        )

    return reply(await settings.change_group_sync(context(), subject(), row, change))


@route(
    blueprint,
    "PATCH",
    f"{_ORGANIZATION}/idpsync/groups/mapping",
    scope="idpsync_settings:update",
    body=MappingChange,
    answers=GroupSyncSettings,
    audit=Audited("idp_sync_settings_group", "write", "", "Organization Group Sync", organization_settings=_group_sync),
)
async def patch_group_sync_mapping(organization: str) -> Response:
    """Add and remove pairs of `mapping`; a name without targets is dropped."""
    row = await _writable(organization)
    body = await read_body(MappingChange)

    def change(stored: GroupSyncSettings) -> GroupSyncSettings:
        return GroupSyncSettings(
            field=stored.field,
            mapping=changed_mapping(stored.mapping, body),
            regex_filter=stored.regex_filter,
            auto_create_missing_groups=stored.auto_create_missing_groups,
        )

    return reply(await settings.change_group_sync(context(), subject(), row, change))


# ---- roles


async def _role_sync(ctx: Context, subject: Subject, organization: str) -> RoleSyncSettings:
    return await settings.role_sync(ctx, subject, await resolve_organization(ctx, subject, organization))


@route(blueprint, "GET", f"{_ORGANIZATION}/idpsync/roles", scope="idpsync_settings:read", answers=RoleSyncSettings)
async def get_role_sync(organization: str) -> Response:
    return reply(await _role_sync(context(), subject(), organization))


@route(
    blueprint,
    "PATCH",
    f"{_ORGANIZATION}/idpsync/roles",
    scope="idpsync_settings:update",
    body=RoleSyncChange,
    answers=RoleSyncSettings,
    audit=Audited("idp_sync_settings_role", "write", "", "Organization Role Sync", organization_settings=_role_sync),
)
async def patch_role_sync(organization: str) -> Response:
    row = await _writable(organization)
    body = await read_body(RoleSyncChange)
    new_settings = RoleSyncSettings(field=body.field, mapping=clean_mapping(body.mapping))
    return reply(await settings.change_role_sync(context(), subject(), row, lambda _: new_settings))


@route(
    blueprint,
    "PATCH",
    f"{_ORGANIZATION}/idpsync/roles/config",
    scope="idpsync_settings:update",
    body=PatchRoleIDPSyncConfigRequest,
    answers=RoleSyncSettings,
    audit=Audited("idp_sync_settings_role", "write", "", "Organization Role Sync", organization_settings=_role_sync),
)
async def patch_role_sync_config(organization: str) -> Response:
    row = await _writable(organization)
    body = await read_body(PatchRoleIDPSyncConfigRequest)

    def change(stored: RoleSyncSettings) -> RoleSyncSettings:
        return RoleSyncSettings(field=body.field, mapping=stored.mapping)

    return reply(await settings.change_role_sync(context(), subject(), row, change))


@route(
    blueprint,
    "PATCH",
    f"{_ORGANIZATION}/idpsync/roles/mapping",
    scope="idpsync_settings:update",
    body=MappingChange,
    answers=RoleSyncSettings,
    audit=Audited("idp_sync_settings_role", "write", "", "Organization Role Sync", organization_settings=_role_sync),
)
async def patch_role_sync_mapping(organization: str) -> Response:
    """Add and remove pairs of `mapping`; a name without targets is dropped."""
    row = await _writable(organization)
    body = await read_body(MappingChange)

    def change(stored: RoleSyncSettings) -> RoleSyncSettings:
        return RoleSyncSettings(field=stored.field, mapping=changed_mapping(stored.mapping, body))

    return reply(await settings.change_role_sync(context(), subject(), row, change))


# ---- organizations


@route(
    blueprint, "GET", "/settings/idpsync/organization", scope="idpsync_settings:read", answers=OrganizationSyncSettings
)
async def get_organization_sync() -> Response:
    return reply(await settings.organization_sync(context(), subject()))


@route(
    blueprint,
    "PATCH",
    "/settings/idpsync/organization",
    scope="idpsync_settings:update",
    body=OrganizationSyncChange,
    answers=OrganizationSyncSettings,
    audit=Audited("idp_sync_settings_organization", "write", "", "Organization Sync", settings.organization_sync),
)
async def patch_organization_sync() -> Response:
    settings.require_sync(subject(), "update")
    body = await read_body(OrganizationSyncChange)
    new_settings = OrganizationSyncSettings(
        field=body.field,
        mapping=clean_mapping(body.mapping),
        organization_assign_default=body.organization_assign_default,
    )
    return reply(await settings.change_organization_sync(context(), subject(), lambda _: new_settings))


@route(
    blueprint,
    "PATCH",
    "/settings/idpsync/organization/config",
    scope="idpsync_settings:update",
    body=PatchOrganizationIDPSyncConfigRequest,
    answers=OrganizationSyncSettings,
    audit=Audited("idp_sync_settings_organization", "write", "", "Organization Sync", settings.organization_sync),
)
async def patch_organization_sync_config() -> Response:
    settings.require_sync(subject(), "update")
    body = await read_body(PatchOrganizationIDPSyncConfigRequest)

    def change(stored: OrganizationSyncSettings) -> OrganizationSyncSettings:
        return OrganizationSyncSettings(
            field=body.field, mapping=stored.mapping, organization_assign_default=body.assign_default
        )

    return reply(await settings.change_organization_sync(context(), subject(), change))


@route(
    blueprint,
    "PATCH",
    "/settings/idpsync/organization/mapping",
    scope="idpsync_settings:update",
    body=MappingChange,
    answers=OrganizationSyncSettings,
    audit=Audited("idp_sync_settings_organization", "write", "", "Organization Sync", settings.organization_sync),
)
async def patch_organization_sync_mapping() -> Response:
    """Add and remove pairs of `mapping`; a name without targets is dropped."""
    settings.require_sync(subject(), "update")
    body = await read_body(MappingChange)

    def change(stored: OrganizationSyncSettings) -> OrganizationSyncSettings:
        return OrganizationSyncSettings(
            field=stored.field,
            mapping=changed_mapping(stored.mapping, body),
            organization_assign_default=stored.organization_assign_default,
        )

    return reply(await settings.change_organization_sync(context(), subject(), change))


# ---- claims of providers


@route(blueprint, "GET", "/settings/idpsync/available-fields", scope="idpsync_settings:read", answers=list[str] | None)
async def get_available_fields() -> Response:
    """Return the names of the claims identity providers have sent; None when there are none."""
    return reply(await provider_claims.claim_fields(context(), subject(), None))


@route(
    blueprint,
    "GET",
    "/settings/idpsync/field-values",
    scope="idpsync_settings:read",
    query={"claimField": str},
    answers=list[str] | None,
)
async def get_field_values() -> Response:
    """Return the recorded values of a claim."""
    return reply(await provider_claims.claim_values(context(), subject(), None, Query().text("claimField")))


@route(
    blueprint,
    "GET",
    f"{_ORGANIZATION}/idpsync/available-fields",
    scope="idpsync_settings:read",
    answers=list[str] | None,
)
async def get_organization_available_fields(organization: str) -> Response:
    """Return the names of the claims identity providers have sent; None when there are none."""
    row = await resolve_organization(context(), subject(), organization)
    return reply(await provider_claims.claim_fields(context(), subject(), row))


@route(
    blueprint,
    "GET",
    f"{_ORGANIZATION}/idpsync/field-values",
    scope="idpsync_settings:read",
    query={"claimField": str},
    answers=list[str] | None,
)
async def get_organization_field_values(organization: str) -> Response:
    """Return the recorded values of a claim."""
    row = await resolve_organization(context(), subject(), organization)
    return reply(await provider_claims.claim_values(context(), subject(), row, Query().text("claimField")))


# ---- sharing


@route(
    blueprint, "GET", f"{_ORGANIZATION}/workspace-sharing", scope="organization:read", answers=WorkspaceSharingSettings
)
async def get_workspace_sharing(organization: str) -> Response:
    row = await resolve_organization(context(), subject(), organization)
    return reply(workspace_sharing.sharing_view(context(), row))


@route(
    blueprint,
    "PATCH",
    f"{_ORGANIZATION}/workspace-sharing",
    scope="organization:update",
    body=UpdateWorkspaceSharingSettingsRequest,
    answers=WorkspaceSharingSettings,
    audit=Audited("organization", "write"),
)
async def patch_workspace_sharing(organization: str) -> Response:
    """Change the setting. Disabling sharing revokes all shares."""
    row = await resolve_organization(context(), subject(), organization)
    require(subject(), "update", organization_resource(row.id))
    body = await read_body(UpdateWorkspaceSharingSettingsRequest)
    return reply(await workspace_sharing.change_sharing(context(), subject(), row, body))
