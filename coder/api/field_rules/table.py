"""The rules of every field of a request, in one table: the only source for endpoints and services.

Fields are in the order in which clients receive their faults. Requests that change an object are checked against its
current state (`present`): a value that is stored already is never refused. A rule defines the response to its violation
(`coder/api/field_rules/rules.py`); requests with texts of their own are in `own_sentences.py` in this folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Never, TypeVar, cast
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from coder.api.field_rules import rules
from coder.api.field_rules.own_sentences import BYTES, OWN, Table
from coder.api.field_rules.rules import (
    REQUIRED,
    REQUIRED_ID,
    Rules,
    failed,
    first_broken,
    one_of,
    told,
)
from coder.api.field_rules.rules import unless_empty as optional
from coder.api.login.external_auth import ExternalAuthDeviceExchange
from coder.api.login.oauth2 import PostOAuth2ProviderAppRequest, PutOAuth2ProviderAppRequest
from coder.api.people.groups import CreateGroupRequest, PatchGroupRequest
from coder.api.people.organizations import CreateOrganizationRequest, UpdateOrganizationRequest
from coder.api.people.passwords import (
    ChangePasswordWithOneTimePasscodeRequest,
    ConvertLoginRequest,
    LoginWithPasswordRequest,
    UpdateUserPasswordRequest,
    ValidateUserPasswordRequest,
)
from coder.api.people.user_requests import CreateFirstUserRequest, CreateUserRequestWithOrgs, UpdateUserProfileRequest
from coder.api.people.user_secrets import CreateUserSecretRequest
from coder.api.people.user_settings import (
    UpdateUserAppearanceSettingsRequest,
)
from coder.api.proxies.proxies import CreateWorkspaceProxyRequest, PatchWorkspaceProxy
from coder.api.site.deployment import RequestOneTimePasscodeRequest
from coder.api.tasks.tasks import CreateTaskRequest
from coder.api.templates.template_builder import TemplateBuilderCreateTemplateRequest
from coder.api.templates.template_versions import (
    CreateTemplateVersionRequest,
    PatchTemplateVersionRequest,
    UpdateActiveTemplateVersion,
)
from coder.api.templates.templates import CreateTemplateRequest, UpdateTemplateMeta
from coder.api.workspaces.build_requests import CreateWorkspaceBuildRequest
from coder.api.workspaces.workspace_requests import CreateWorkspaceRequest
from coder.api.workspaces.workspace_settings import (
    SHARING_OWNERS,
    UpdateWorkspaceRequest,
    UpdateWorkspaceSharingSettingsRequest,
)
from coder.base.json_types import Json
from coder.domain.foundation.zero import NIL_UUID
from coder.domain.people import user_secrets as secrets
from coder.domain.provisioning.provisioners import (
    PROVISIONERS,
)
from coder.domain.workspaces.builds import REASONS_FOR_CLIENTS, TRANSITIONS

_APP = {"name": (REQUIRED, rules.APP_NAME), "callback_url": (REQUIRED, rules.HTTP_URL)}

NEW: Table = {
    CreateFirstUserRequest: {
        "email": (REQUIRED, rules.EMAIL),
        "username": (REQUIRED, rules.USERNAME),
        "name": (rules.REAL_NAME,),
        "password": (REQUIRED,),
    },
    CreateUserRequestWithOrgs: {
        "email": (REQUIRED, rules.EMAIL),
        "username": (REQUIRED, rules.USERNAME),
        "name": (rules.REAL_NAME,),
    },
    LoginWithPasswordRequest: {"email": (REQUIRED, rules.EMAIL), "password": (REQUIRED,)},
    RequestOneTimePasscodeRequest: {"email": (REQUIRED, rules.EMAIL)},
    ChangePasswordWithOneTimePasscodeRequest: {
        "email": (REQUIRED, rules.EMAIL),
        "password": (REQUIRED,),
        "one_time_passcode": (REQUIRED,),
    },
    ValidateUserPasswordRequest: {"password": (REQUIRED,)},
    ConvertLoginRequest: {"to_type": (REQUIRED,), "password": (REQUIRED,)},
    UpdateUserPasswordRequest: {"password": (REQUIRED,)},
    UpdateUserAppearanceSettingsRequest: {"theme_preference": (REQUIRED,), "terminal_font": (REQUIRED,)},
    ExternalAuthDeviceExchange: {"device_code": (REQUIRED,)},
    CreateOrganizationRequest: {
        "name": (REQUIRED, rules.ORGANIZATION_NAME),
        "display_name": (rules.ORGANIZATION_TITLE,),
    },
    CreateGroupRequest: {"name": (REQUIRED, rules.GROUP_NAME), "display_name": (rules.GROUP_TITLE,)},
    CreateTemplateRequest: {
        "name": (rules.TEMPLATE_NAME,),
        "display_name": (rules.TEMPLATE_TITLE,),
        "description": (rules.DESCRIPTION,),
        "template_version_id": (REQUIRED_ID,),
    },
    TemplateBuilderCreateTemplateRequest: {
        "base_template_id": (REQUIRED,),
        "organization_id": (REQUIRED_ID,),
        "name": (rules.TEMPLATE_NAME,),
        "display_name": (rules.TEMPLATE_TITLE,),
        "description": (rules.DESCRIPTION,),
    },
    CreateTemplateVersionRequest: {
        "name": (optional(rules.VERSION_NAME),),
        "message": (optional(rules.VERSION_MESSAGE),),
        "storage_method": (REQUIRED, one_of("file")),
        "file_id": (),
        "example_id": (),
        "provisioner": (REQUIRED, one_of(*PROVISIONERS)),
    },
    UpdateActiveTemplateVersion: {"id": (REQUIRED_ID,)},
    CreateWorkspaceRequest: {
        "template_id": (),
        "template_version_id": (),
        "name": (rules.WORKSPACE_NAME,),
    },
    CreateWorkspaceBuildRequest: {
        "state": (BYTES,),
        "transition": (one_of(*TRANSITIONS),),
        "log_level": (optional(one_of("debug")),),
        "reason": (optional(one_of(*REASONS_FOR_CLIENTS)),),
    },
    CreateTaskRequest: {"template_version_id": (REQUIRED_ID,)},
    CreateWorkspaceProxyRequest: {"name": (REQUIRED, rules.USERNAME)},
    PostOAuth2ProviderAppRequest: _APP,
    UpdateWorkspaceSharingSettingsRequest: {"shareable_workspace_owners": (optional(one_of(*SHARING_OWNERS)),)},
}
"""Requests that create an object: endpoints check them right after decoding."""

CHANGES: Table = {
    UpdateUserProfileRequest: {"username": (REQUIRED, rules.USERNAME), "name": (rules.REAL_NAME,)},
    UpdateOrganizationRequest: {
        "name": (optional(rules.ORGANIZATION_NAME),),
        "display_name": (rules.ORGANIZATION_TITLE,),
    },
    PatchGroupRequest: {"name": (optional(rules.GROUP_NAME),), "display_name": (rules.GROUP_TITLE,)},
    UpdateTemplateMeta: {"name": (optional(rules.TEMPLATE_NAME),), "display_name": (rules.TEMPLATE_TITLE,)},
    PatchTemplateVersionRequest: {
        "name": (optional(rules.VERSION_NAME),),
        "message": (optional(rules.VERSION_MESSAGE),),
    },
    PatchWorkspaceProxy: {"name": (optional(rules.USERNAME),)},
    UpdateWorkspaceRequest: {"name": (rules.USERNAME,)},
    PutOAuth2ProviderAppRequest: _APP,
}
"""Requests that change an object: services check them once they have loaded it."""

TABLE: Table = {**NEW, **CHANGES, **OWN}


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fault:
    """A field that breaks a rule."""

    field: str
    detail: str
    message: str = ""
    """Message of the rule."""
    listed: bool = True


def faults(body: msgspec.Struct, present: Mapping[str, Json] | None = None) -> list[Fault]:
    """Return the faults of a request, in the order of the table; values in `present` always pass."""
    fields = TABLE.get(type(body), {})
    # each function takes the class that it is listed under, each rule the type of its field
    relate = cast("Callable[[msgspec.Struct], Iterator[tuple[str, str]]]", _RELATED.get(type(body), _no_pairs))
    exempt_fields = cast("Callable[[msgspec.Struct], frozenset[str]]", _EXEMPT.get(type(body), _no_fields))
    related, exempt = dict(relate(body)), exempt_fields(body)
    results = []
    for name, field_rules in fields.items():
        value = getattr(body, name)
        if name in related:
            results.append(Fault(name, related[name]))
        elif name not in exempt and not (present is not None and name in present and present[name] == value):
            rule = first_broken(_plain(value, name), cast("Rules[object]", field_rules))
            if rule is not None:
                results.append(Fault(*told(name, _plain(value, name), rule), rule.message, rule.listed))
    return results


def _plain(value: T | UnsetType | None, name: str) -> T | UUID | str:
    if isinstance(value, UnsetType) or value is None:
        return NIL_UUID if name == "id" or (name.endswith("_id") and name != "example_id") else ""
    return value


# ---- rules about several fields


def _no_pairs(_body: msgspec.Struct) -> Iterator[tuple[str, str]]:
    return iter(())


def _no_fields(_body: msgspec.Struct) -> frozenset[str]:
    return frozenset()


def _template_or_version(body: CreateWorkspaceRequest) -> Iterator[tuple[str, str]]:
    """Require either a template or a version, not both."""
    chosen = [isinstance(value, UUID) and value.int for value in (body.template_id, body.template_version_id)]
    if bool(chosen[0]) == bool(chosen[1]):
        tag = "excluded_with" if chosen[0] else "required_without"
        for name in ("template_id", "template_version_id"):
            yield failed(name, tag, _plain(getattr(body, name), name))


def _file_or_example(body: CreateTemplateVersionRequest) -> Iterator[tuple[str, str]]:
    if not (isinstance(body.file_id, UUID) and body.file_id.int) and body.example_id in (UNSET, ""):
        for name in ("file_id", "example_id"):
            yield failed(name, "required_without", _plain(getattr(body, name), name))


def _given_no_place(body: CreateUserSecretRequest) -> Iterator[tuple[str, str]]:
    """Require a location for an enabled secret."""
    if body.enabled is not False and body.env_name in (UNSET, "") and body.file_path in (UNSET, ""):
        yield "env_name", secrets.NO_TARGET


def _without_address(body: CreateUserRequestWithOrgs) -> frozenset[str]:
    """Return the fields without an address: service accounts have none."""
    return frozenset({"email"} if body.service_account is True else ())


_RELATED: dict[type[msgspec.Struct], Callable[[Never], Iterator[tuple[str, str]]]] = {
    CreateWorkspaceRequest: _template_or_version,
    CreateTemplateVersionRequest: _file_or_example,
    CreateUserSecretRequest: _given_no_place,
}
_EXEMPT: dict[type[msgspec.Struct], Callable[[Never], frozenset[str]]] = {CreateUserRequestWithOrgs: _without_address}
