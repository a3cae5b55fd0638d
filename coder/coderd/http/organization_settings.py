"""How identity providers fill organizations, groups and roles; whether workspaces may be shared."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.oauth2 import (
    GroupSyncSettings,
    OrganizationSyncSettings,
    PatchGroupIDPSyncConfigRequest,
    PatchOrganizationIDPSyncConfigRequest,
    PatchRoleIDPSyncConfigRequest,
    RoleSyncSettings,
)
from coder.api.workspaces import UpdateWorkspaceSharingSettingsRequest
from coder.coderd.http.auth import authenticated, context, subject
from coder.coderd.http.json import read_body, reply
from coder.coderd.http.query import Query
from coder.coderd.services import organization_settings as settings
from coder.coderd.services.authorization import require
from coder.coderd.services.errors import Invalid
from coder.coderd.services.organization_settings import (
    GroupSyncChange,
    MappingChange,
    OrganizationSyncChange,
    RoleSyncChange,
    changed_mapping,
    clean_mapping,
)
from coder.coderd.services.organizations import organization_resource, resolve_organization
from coder.coderd.store.organizations import OrganizationRow

blueprint = Blueprint("organization_settings", __name__, url_prefix="/api/v2")

_ORGANIZATION = "/organizations/<organization>/settings"


async def _writable(organization: str) -> OrganizationRow:
    """The organization, its sync settings open to the caller: asked before the body is looked at."""
    row = await resolve_organization(context(), subject(), organization)
    settings.require_sync(subject(), "update", row)
    return row


# ---- groups


@blueprint.get(f"{_ORGANIZATION}/idpsync/groups")
@authenticated
async def get_group_sync(organization: str) -> Response:
    row = await resolve_organization(context(), subject(), organization)
    return reply(await settings.group_sync(context(), subject(), row))


@blueprint.patch(f"{_ORGANIZATION}/idpsync/groups")
@authenticated
async def patch_group_sync(organization: str) -> Response:
    row = await _writable(organization)
    body = await read_body(GroupSyncChange)
    if body.legacy_group_name_mapping:
        raise Invalid(
            "Unexpected field 'legacy_group_name_mapping'. Field not allowed, set to null or remove it.",
            "legacy_group_name_mapping is deprecated, use mapping instead",
            [("legacy_group_name_mapping", "field is not allowed")],
        )
    wanted = GroupSyncSettings(
        field=body.field,
        mapping=clean_mapping(body.mapping),
        regex_filter=body.regex_filter,
        auto_create_missing_groups=body.auto_create_missing_groups,
    )
    return reply(await settings.change_group_sync(context(), subject(), row, lambda _: wanted))


@blueprint.patch(f"{_ORGANIZATION}/idpsync/groups/config")
@authenticated
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


@blueprint.patch(f"{_ORGANIZATION}/idpsync/groups/mapping")
@authenticated
async def patch_group_sync_mapping(organization: str) -> Response:
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


@blueprint.get(f"{_ORGANIZATION}/idpsync/roles")
@authenticated
async def get_role_sync(organization: str) -> Response:
    row = await resolve_organization(context(), subject(), organization)
    return reply(await settings.role_sync(context(), subject(), row))


@blueprint.patch(f"{_ORGANIZATION}/idpsync/roles")
@authenticated
async def patch_role_sync(organization: str) -> Response:
    row = await _writable(organization)
    body = await read_body(RoleSyncChange)
    wanted = RoleSyncSettings(field=body.field, mapping=clean_mapping(body.mapping))
    return reply(await settings.change_role_sync(context(), subject(), row, lambda _: wanted))


@blueprint.patch(f"{_ORGANIZATION}/idpsync/roles/config")
@authenticated
async def patch_role_sync_config(organization: str) -> Response:
    row = await _writable(organization)
    body = await read_body(PatchRoleIDPSyncConfigRequest)

    def change(stored: RoleSyncSettings) -> RoleSyncSettings:
        return RoleSyncSettings(field=body.field, mapping=stored.mapping)

    return reply(await settings.change_role_sync(context(), subject(), row, change))


@blueprint.patch(f"{_ORGANIZATION}/idpsync/roles/mapping")
@authenticated
async def patch_role_sync_mapping(organization: str) -> Response:
    row = await _writable(organization)
    body = await read_body(MappingChange)

    def change(stored: RoleSyncSettings) -> RoleSyncSettings:
        return RoleSyncSettings(field=stored.field, mapping=changed_mapping(stored.mapping, body))

    return reply(await settings.change_role_sync(context(), subject(), row, change))


# ---- organizations


@blueprint.get("/settings/idpsync/organization")
@authenticated
async def get_organization_sync() -> Response:
    return reply(await settings.organization_sync(context(), subject()))


@blueprint.patch("/settings/idpsync/organization")
@authenticated
async def patch_organization_sync() -> Response:
    settings.require_sync(subject(), "update")
    body = await read_body(OrganizationSyncChange)
    wanted = OrganizationSyncSettings(
        field=body.field,
        mapping=clean_mapping(body.mapping),
        organization_assign_default=body.organization_assign_default,
    )
    return reply(await settings.change_organization_sync(context(), subject(), lambda _: wanted))


@blueprint.patch("/settings/idpsync/organization/config")
@authenticated
async def patch_organization_sync_config() -> Response:
    settings.require_sync(subject(), "update")
    body = await read_body(PatchOrganizationIDPSyncConfigRequest)

    def change(stored: OrganizationSyncSettings) -> OrganizationSyncSettings:
        return OrganizationSyncSettings(
            field=body.field, mapping=stored.mapping, organization_assign_default=body.assign_default
        )

    return reply(await settings.change_organization_sync(context(), subject(), change))


@blueprint.patch("/settings/idpsync/organization/mapping")
@authenticated
async def patch_organization_sync_mapping() -> Response:
    settings.require_sync(subject(), "update")
    body = await read_body(MappingChange)

    def change(stored: OrganizationSyncSettings) -> OrganizationSyncSettings:
        return OrganizationSyncSettings(
            field=stored.field,
            mapping=changed_mapping(stored.mapping, body),
            organization_assign_default=stored.organization_assign_default,
        )

    return reply(await settings.change_organization_sync(context(), subject(), change))


# ---- what providers said


@blueprint.get("/settings/idpsync/available-fields")
@authenticated
async def get_available_fields() -> Response:
    return reply(await settings.claim_fields(context(), subject(), None))


@blueprint.get("/settings/idpsync/field-values")
@authenticated
async def get_field_values() -> Response:
    return reply(await settings.claim_values(context(), subject(), None, Query().text("claimField")))


@blueprint.get(f"{_ORGANIZATION}/idpsync/available-fields")
@authenticated
async def get_organization_available_fields(organization: str) -> Response:
    row = await resolve_organization(context(), subject(), organization)
    return reply(await settings.claim_fields(context(), subject(), row))


@blueprint.get(f"{_ORGANIZATION}/idpsync/field-values")
@authenticated
async def get_organization_field_values(organization: str) -> Response:
    row = await resolve_organization(context(), subject(), organization)
    return reply(await settings.claim_values(context(), subject(), row, Query().text("claimField")))


# ---- sharing


@blueprint.get(f"{_ORGANIZATION}/workspace-sharing")
@authenticated
async def get_workspace_sharing(organization: str) -> Response:
    row = await resolve_organization(context(), subject(), organization)
    return reply(settings.sharing_view(context(), row))


@blueprint.patch(f"{_ORGANIZATION}/workspace-sharing")
@authenticated
async def patch_workspace_sharing(organization: str) -> Response:
    row = await resolve_organization(context(), subject(), organization)
    require(subject(), "update", organization_resource(row.id))
    body = await read_body(UpdateWorkspaceSharingSettingsRequest)
    return reply(await settings.change_sharing(context(), subject(), row, body))
