"""The rules of every field of a request, in one table: endpoints and services check requests by it and by nothing else.

Fields stand in the order in which clients are told of them. Requests that change something are judged against what
there is (`present`): a value that is there already is never refused. Which sentences a rule has, if it has any of its
own, is the rule's (`coder/domain/foundation/field_rules.py`); those of nouns with such sentences are made here of the
laws of each noun.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec
from msgspec import UNSET

from coder.api.access.keys import CreateTokenRequest
from coder.api.agents.agent_ports import UpsertWorkspaceAgentPortShareRequest
from coder.api.events.notifications import (
    CustomNotificationContent,
    CustomNotificationRequest,
    UpdateNotificationTemplateMethod,
)
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
from coder.api.people.user_secrets import CreateUserSecretRequest, ImportUserSecretsRequest
from coder.api.people.user_settings import (
    UpdateUserAppearanceSettingsRequest,
    UpdateUserPreferenceSettingsRequest,
    UpdateUserQuietHoursScheduleRequest,
)
from coder.api.people.user_skills import CreateUserSkillRequest, UpdateUserSkillRequest
from coder.api.provisioning.provisioner_keys import CreateProvisionerKeyRequest
from coder.api.proxies.proxies import CreateWorkspaceProxyRequest, PatchWorkspaceProxy
from coder.api.site.deployment import RequestOneTimePasscodeRequest
from coder.api.tasks.tasks import CreateTaskRequest
from coder.api.templates.template_versions import (
    CreateTemplateVersionRequest,
    PatchTemplateVersionRequest,
    UpdateActiveTemplateVersion,
)
from coder.api.templates.templates import CreateTemplateRequest, UpdateTemplateMeta
from coder.api.wireguard.wireguard_clients import CreateWireguardClientRequest
from coder.api.workspaces.build_requests import CreateWorkspaceBuildRequest, UpdateWorkspaceBuildStateRequest
from coder.api.workspaces.workspace_requests import CreateWorkspaceRequest
from coder.api.workspaces.workspace_settings import (
    SHARING_OWNERS,
    ExtendWorkspaceRequest,
    UpdateWorkspaceAutomaticUpdatesRequest,
    UpdateWorkspaceAutostartRequest,
    UpdateWorkspaceRequest,
    UpdateWorkspaceSharingSettingsRequest,
    UpdateWorkspaceTTLRequest,
)
from coder.domain.access.scopes import explain_allow_list, explain_scopes
from coder.domain.events.notification_texts import MAX_TEXT, MAX_TITLE, METHODS, explain_custom, explain_method
from coder.domain.foundation import field_rules as rules
from coder.domain.foundation.field_rules import (
    ITSELF,
    REQUIRED,
    REQUIRED_ID,
    FieldRule,
    explain_base64,
    explained,
    failed,
    first_broken,
    one_of,
    told,
    unless,
)
from coder.domain.foundation.field_rules import unless_empty as optional
from coder.domain.foundation.names import MAX_NAME, is_name
from coder.domain.foundation.schedules import explain_daily, explain_weekly
from coder.domain.foundation.search import explain_rfc3339
from coder.domain.foundation.zero import NIL_UUID
from coder.domain.network.overlay import KEY_SIZE, read_public_key
from coder.domain.people import user_secrets as secrets
from coder.domain.people.user_skills import MAX_CONTENT, read_head
from coder.domain.provisioning.provisioners import (
    MAX_KEY_NAME,
    PROVISIONERS,
    RESERVED_KEYS,
    is_key_name,
    is_reserved_key,
)
from coder.domain.provisioning.tags import explain_tags
from coder.domain.workspaces.builds import REASONS_FOR_CLIENTS, TRANSITIONS
from coder.domain.workspaces.workspaces import (
    AUTOMATIC_UPDATES,
    LEVEL_REFUSED,
    MAX_SHARED_PORT,
    MAX_TTL_MS,
    MIN_SHARED_PORT,
    MIN_TTL_MS,
    SHARE_LEVELS,
    SHARE_PROTOCOLS,
    explain_ttl,
)

Table = Mapping[type[msgspec.Struct], Mapping[str, tuple[FieldRule, ...]]]

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
        "transition": (one_of(*TRANSITIONS),),
        "log_level": (optional(one_of("debug")),),
        "reason": (optional(one_of(*REASONS_FOR_CLIENTS)),),
    },
    CreateTaskRequest: {"template_version_id": (REQUIRED_ID,)},
    CreateWorkspaceProxyRequest: {"name": (REQUIRED, rules.USERNAME)},
    PostOAuth2ProviderAppRequest: _APP,
    UpdateWorkspaceSharingSettingsRequest: {"shareable_workspace_owners": (optional(one_of(*SHARING_OWNERS)),)},
}
"""Requests that make something: endpoints refuse them as soon as they are read."""

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
"""Requests that change something: services check them once they know what there is."""

BAD_JSON = "Request body must be valid JSON."
"""Of values that Go's decoder refuses, before any rule is asked."""
MOST_NAMED_WORKSPACES = 256
"""That one WireGuard client names."""
_DISPLAY_MODES = ("auto", "always_collapsed", "always_expanded")
_SCHEDULES = ("", "0 7 * * *", "CRON_TZ=UTC 30 9 * * 1-5"), ("tomorrow", "0 7 1 * *", "0 25 * * *")
_BYTES = explained(explain_base64, ("", "e30="), ("e30*", "e30"), BAD_JSON, listed=False)


def _explain_skill(content: str) -> str:
    return read_head(content).fault


def _explain_ttl(ttl_ms: Any) -> str:
    refusal = explain_ttl(ttl_ms or None)
    return "" if refusal is None else refusal.detail


def _explain_no_time(_: Any) -> str:
    return failed("deadline", "required", "0001-01-01 00:00:00 +0000 UTC")[1]


def _explain_content(content: Any) -> str:
    return explain_custom(content.title, content.message) if content else "content is required"


def _explain_port(port: int) -> str:
    in_range = MIN_SHARED_PORT <= port <= MAX_SHARED_PORT
    return "" if in_range else f"Port must be between {MIN_SHARED_PORT} and {MAX_SHARED_PORT}."


def _custom(title: int, message: int) -> CustomNotificationContent:
    return CustomNotificationContent("a" * title, "a" * message)


def _skill(size: int) -> str:
    head = "---\nname: a\ndescription: b\n---\n"
    return head + "a" * (size - len(head))


def _explain_reserved(name: str) -> str:
    return f"Name cannot be reserved name '{name}'" if is_reserved_key(name) else ""


def _scope(names: Callable[[Any], list[str]], inside: rules.Values, outside: rules.Values) -> FieldRule:
    return explained(lambda value: explain_scopes(names(value)), inside, outside, _INVALID_KEY, listed=False)


_INVALID_KEY = "Failed to create API key."
_SKILL = FieldRule(
    "",
    lambda content: not _explain_skill(content),
    lambda: ((_skill(40), _skill(MAX_CONTENT)), ("", "a", _skill(MAX_CONTENT + 1), _skill(40).replace("a", "A"))),
    _explain_skill,
)

OWN: Table = {
    UpdateWorkspaceAutostartRequest: {
        "schedule": (explained(explain_weekly, *_SCHEDULES, "Invalid autostart schedule."),),
    },
    UpdateWorkspaceTTLRequest: {
        "ttl_ms": (
            explained(
                _explain_ttl,
                (0, MIN_TTL_MS, MAX_TTL_MS),
                (-1, 1, MIN_TTL_MS - 1, MAX_TTL_MS + 1),
                "Error updating workspace time until shutdown.",
            ),
        ),
    },
    UpdateWorkspaceAutomaticUpdatesRequest: {
        "automatic_updates": (
            explained(
                unless(AUTOMATIC_UPDATES.__contains__, "must be always or never"),
                AUTOMATIC_UPDATES,
                ("", "Always", "sometimes"),
                "Invalid request",
            ),
        ),
    },
    ExtendWorkspaceRequest: {
        "deadline": (
            FieldRule("required", bool, lambda: (("2026-01-01T00:00:00Z",), ("",)), _explain_no_time),
            explained(
                explain_rfc3339,
                ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5+01:00"),
                ("soon", "2026-01-01", "2026-13-01T00:00:00Z"),
                BAD_JSON,
                listed=False,
            ),
        ),
    },
    UpsertWorkspaceAgentPortShareRequest: {
        "share_level": (
            explained(
                unless(SHARE_LEVELS[1:].__contains__, LEVEL_REFUSED), SHARE_LEVELS[1:], ("", "owner", "zzz"), ITSELF
            ),
        ),
        "protocol": (
            explained(
                unless(SHARE_PROTOCOLS.__contains__, "Port protocol not allowed."),
                SHARE_PROTOCOLS,
                ("", "ftp", "HTTP"),
                ITSELF,
            ),
        ),
        "port": (
            explained(
                _explain_port,
                (MIN_SHARED_PORT, MAX_SHARED_PORT),
                (-1, 0, MIN_SHARED_PORT - 1, MAX_SHARED_PORT + 1),
                ITSELF,
            ),
        ),
    },
    CreateTokenRequest: {
        "lifetime": (
            explained(
                unless(lambda length: length >= 0, "lifetime must be positive number greater than 0"),
                (0, 1),
                (-1,),
                "Failed to validate create API key request.",
                listed=False,
            ),
        ),
        "scope": (_scope(lambda name: [name] if name else [], ("", "all", "workspace:read"), ("zzz", "All")),),
        "scopes": (_scope(list, ([], ["workspace:read"]), (["workspace:fly"], ["workspace:read", ""])),),
        "allow_list": (
            explained(
                explain_allow_list,
                ([], ["*:*"], ["workspace:11111111-1111-4111-8111-111111111111"]),
                (["x"], ["rocket:*"], ["workspace:x"]),
                _INVALID_KEY,
                listed=False,
            ),
        ),
    },
    CustomNotificationRequest: {
        "content": (
            explained(
                _explain_content,
                (_custom(1, 1), _custom(MAX_TITLE, MAX_TEXT)),
                (None, _custom(0, 1), _custom(1, 0), _custom(MAX_TITLE + 1, 1), _custom(1, MAX_TEXT + 1)),
                "Invalid request body",
                listed=False,
            ),
        ),
    },
    UpdateNotificationTemplateMethod: {
        "method": (
            explained(
                explain_method,
                ("", *METHODS),
                ("pigeon", "SMTP"),
                "Invalid request to update notification template method",
            ),
        ),
    },
    CreateProvisionerKeyRequest: {
        "name": (
            explained(unless(bool, "Name is required"), ("a",), ("",), ITSELF),
            explained(_explain_reserved, ("a",), (*RESERVED_KEYS.values(), "PSK"), ITSELF),
            explained(
                unless(
                    is_key_name, f"Must be letters, digits and single dashes or underscores, at most {MAX_KEY_NAME}."
                ),
                ("a", "a-b_c", "a" * MAX_KEY_NAME),
                ("a b", "-a", "a--b", "a" * (MAX_KEY_NAME + 1)),
            ),
        ),
        "tags": (
            explained(
                explain_tags,
                ({}, {"a": ""}),
                ({"": "a"}, {"a": "\0"}, {"\0": "a"}),
                "Given tags are not acceptable to the service",
            ),
        ),
    },
    CreateUserSecretRequest: {
        "name": (explained(unless(bool, "Name is required."), ("a",), ("",)),),
        "value": (
            explained(unless(bool, "Value is required."), ("a",), ("",)),
            rules.at_most(
                secrets.MAX_VALUE, f"value must not exceed {secrets.MAX_VALUE} bytes", lambda text: len(text.encode())
            ),
            explained(unless(lambda text: "\0" not in text, "value must not contain null bytes"), ("a",), ("a\0",)),
        ),
        "env_name": (
            explained(secrets.explain_env_name, ("_A1", "a"), ("1A", "A B", "A-B", "PATH", "path", "CODER", "CODER_X")),
        ),
        "file_path": (explained(secrets.explain_file_path, ("", "/a", "~/a"), ("a", "./a", "/a/../b", "/a\0")),),
    },
    ImportUserSecretsRequest: {
        "format": (
            REQUIRED,
            explained(
                unless(secrets.FORMATS.__contains__, "must be one of: env, json, yaml"), secrets.FORMATS, ("xml", "ENV")
            ),
        ),
        "content": (
            REQUIRED,
            rules.at_most(secrets.MAX_IMPORTED, f"must not be longer than {secrets.MAX_IMPORTED} characters"),
        ),
    },
    UpdateWorkspaceBuildStateRequest: {"state": (_BYTES,)},
    UpdateUserQuietHoursScheduleRequest: {
        "schedule": (
            explained(
                explain_daily,
                ("", "0 7 * * *", "CRON_TZ=UTC 59 23 * * *"),
                ("tomorrow", "0 7 1 * *", "0 25 * * *", "* 7 * * *"),
                "Failed to parse quiet hours schedule.",
                listed=False,
            ),
        ),
    },
    UpdateUserPreferenceSettingsRequest: {
        "agent_chat_send_shortcut": (optional(one_of("enter", "modifier_enter")),),
        "code_diff_display_mode": (optional(one_of(*_DISPLAY_MODES)),),
        "shell_tool_display_mode": (optional(one_of(*_DISPLAY_MODES)),),
        "thinking_display_mode": (optional(one_of(*_DISPLAY_MODES, "preview")),),
    },
    CreateUserSkillRequest: {"content": (_SKILL,)},
    UpdateUserSkillRequest: {"content": (_SKILL,)},
    CreateWireguardClientRequest: {
        "name": (
            explained(
                unless(is_name, f"Use up to {MAX_NAME} letters and digits, joined by single hyphens."),
                ("a", "a-b", "a" * MAX_NAME),
                ("a b", "a_b", "a" * (MAX_NAME + 1)),
            ),
        ),
        "public_key": (
            explained(
                unless(
                    lambda text: read_public_key(text) is not None,
                    f"A WireGuard public key is {KEY_SIZE} bytes in base64.",
                ),
                ("A" * 42 + "E=",),
                ("a", "A" * 43 + "=", "*" * 43 + "=", "A" * 38 + "E="),
            ),
        ),
        "workspace_ids": (
            explained(
                unless(
                    lambda ids: len(ids or ()) <= MOST_NAMED_WORKSPACES,
                    f"At most {MOST_NAMED_WORKSPACES}; without a list every workspace is meant.",
                ),
                ([], [NIL_UUID] * MOST_NAMED_WORKSPACES),
                ([NIL_UUID] * (MOST_NAMED_WORKSPACES + 1),),
            ),
        ),
        "lifetime_seconds": (
            explained(unless(lambda length: (length or 0) >= 0, "A lifetime cannot be negative."), (0, 1), (-1,)),
        ),
    },
}
"""Requests whose services have sentences of their own, and check them in their turn: after rights, or together with
what there is."""

TABLE: Table = {**NEW, **CHANGES, **OWN}


@dataclass(frozen=True, slots=True)
class Fault:
    """A field that breaks a rule."""

    field: str
    detail: str
    message: str = ""
    "As the rule has it."
    listed: bool = True


def faults(body: msgspec.Struct, present: Mapping[str, Any] | None = None) -> list[Fault]:
    """What is wrong with the request, in the order of the table; `present` values pass whatever they are."""
    fields = TABLE.get(type(body), {})
    related = dict(_RELATED.get(type(body), _nothing)(body))
    exempt = _EXEMPT.get(type(body), _nobody)(body)
    found = []
    for name, wanted in fields.items():
        value = getattr(body, name)
        if name in related:
            found.append(Fault(name, related[name]))
        elif name not in exempt and not (present is not None and name in present and present[name] == value):
            rule = first_broken(_plain(value, name), wanted)
            if rule is not None:
                found.append(Fault(*told(name, _plain(value, name), rule), rule.message, rule.listed))
    return found


def _plain(value: Any, name: str) -> Any:
    if value is not UNSET and value is not None:
        return value
    return NIL_UUID if name == "id" or (name.endswith("_id") and name != "example_id") else ""


# ---- rules about several fields


def _nothing(_body: Any) -> Iterator[tuple[str, str]]:
    return iter(())


def _nobody(_body: Any) -> frozenset[str]:
    return frozenset()


def _template_or_version(body: Any) -> Iterator[tuple[str, str]]:
    """A workspace is made of a template or of a version, not of both."""
    given = [isinstance(value, UUID) and value.int for value in (body.template_id, body.template_version_id)]
    if bool(given[0]) == bool(given[1]):
        tag = "excluded_with" if given[0] else "required_without"
        for name in ("template_id", "template_version_id"):
            yield failed(name, tag, _plain(getattr(body, name), name))


def _file_or_example(body: Any) -> Iterator[tuple[str, str]]:
    if not (isinstance(body.file_id, UUID) and body.file_id.int) and body.example_id in (UNSET, ""):
        for name in ("file_id", "example_id"):
            yield failed(name, "required_without", _plain(getattr(body, name), name))


def _given_no_place(body: Any) -> Iterator[tuple[str, str]]:
    """A secret that is on is put somewhere."""
    if body.enabled is not False and body.env_name in (UNSET, "") and body.file_path in (UNSET, ""):
        yield "env_name", secrets.NO_TARGET


def _without_address(body: Any) -> frozenset[str]:
    """Service accounts have no address."""
    return frozenset({"email"} if body.service_account is True else ())


_RELATED: dict[type[msgspec.Struct], Callable[[Any], Iterator[tuple[str, str]]]] = {
    CreateWorkspaceRequest: _template_or_version,
    CreateTemplateVersionRequest: _file_or_example,
    CreateUserSecretRequest: _given_no_place,
}
_EXEMPT: dict[type[msgspec.Struct], Callable[[Any], frozenset[str]]] = {CreateUserRequestWithOrgs: _without_address}
