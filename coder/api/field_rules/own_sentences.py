"""Requests whose refusals have texts of their own, with the rules that produce them: built from each noun's rules.

Part of the one table of `table.py`. Services check these themselves: after permissions, or together with stored state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Never
from uuid import UUID

import msgspec

from coder.api.access.keys import CreateTokenRequest
from coder.api.agents.agent_ports import UpsertWorkspaceAgentPortShareRequest
from coder.api.field_rules import rules
from coder.api.field_rules.rules import (
    ITSELF,
    REQUIRED,
    FieldRule,
    explain_base64,
    explained,
    failed,
    one_of,
    unless,
)
from coder.api.field_rules.rules import unless_empty as optional
from coder.api.notifications.notifications import (
    CustomNotificationContent,
    CustomNotificationRequest,
    UpdateNotificationTemplateMethod,
)
from coder.api.people.user_secrets import CreateUserSecretRequest, ImportUserSecretsRequest
from coder.api.people.user_settings import (
    UpdateUserPreferenceSettingsRequest,
    UpdateUserQuietHoursScheduleRequest,
)
from coder.api.people.user_skills import CreateUserSkillRequest, UpdateUserSkillRequest
from coder.api.provisioning.provisioner_keys import CreateProvisionerKeyRequest
from coder.api.wireguard.wireguard_clients import CreateWireguardClientRequest
from coder.api.workspaces.build_requests import UpdateWorkspaceBuildStateRequest
from coder.api.workspaces.workspace_settings import (
    ExtendWorkspaceRequest,
    UpdateWorkspaceAutomaticUpdatesRequest,
    UpdateWorkspaceAutostartRequest,
    UpdateWorkspaceTTLRequest,
)
from coder.domain.access.scopes import explain_allow_list, explain_scopes
from coder.domain.foundation.names import MAX_NAME, is_name
from coder.domain.foundation.schedules import explain_daily, explain_weekly
from coder.domain.foundation.search import explain_rfc3339
from coder.domain.foundation.share_levels import SHARE_LEVELS
from coder.domain.foundation.zero import NIL_UUID
from coder.domain.network.overlay import KEY_SIZE, read_public_key
from coder.domain.notifications.notification_texts import MAX_TEXT, MAX_TITLE, METHODS, explain_custom, explain_method
from coder.domain.people import user_secrets as secrets
from coder.domain.people.user_skills import MAX_CONTENT, read_head
from coder.domain.provisioning.provisioners import (
    MAX_KEY_NAME,
    RESERVED_KEYS,
    is_key_name,
    is_reserved_key,
)
from coder.domain.provisioning.tags import explain_tags
from coder.domain.workspaces.workspaces import (
    AUTOMATIC_UPDATES,
    LEVEL_REFUSED,
    MAX_SHARED_PORT,
    MAX_TTL_MS,
    MIN_SHARED_PORT,
    MIN_TTL_MS,
    SHARE_PROTOCOLS,
    explain_ttl,
)

Table = Mapping[type[msgspec.Struct], Mapping[str, tuple[FieldRule[Never], ...]]]
"""Request -> field -> its rules."""

BAD_JSON = "Request body must be valid JSON."
"""Refusal of values that Go's decoder rejects, before any rule runs."""
MAX_NAMED_WORKSPACES = 256
"""Ours: workspaces listed by one WireGuard client."""
_DISPLAY_MODES = ("auto", "always_collapsed", "always_expanded")
_SCHEDULES = ("", "0 7 * * *", "CRON_TZ=UTC 30 9 * * 1-5"), ("tomorrow", "0 7 1 * *", "0 25 * * *")
BYTES = explained(explain_base64, ("", "e30="), ("e30*", "e30"), BAD_JSON, listed=False)


def _explain_skill(content: str) -> str:
    return read_head(content).fault


def _explain_ttl(ttl_ms: int | None) -> str:
    refusal = explain_ttl(ttl_ms or None)
    return "" if refusal is None else refusal.detail


def _explain_no_time(_: object) -> str:
    return failed("deadline", "required", "0001-01-01 00:00:00 +0000 UTC")[1]


def _explain_content(content: CustomNotificationContent | None) -> str:
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


def _explain_scope(name: str) -> str:
    return explain_scopes([name] if name else [])


def _are_few(ids: Sequence[UUID] | None) -> bool:
    return len(ids or ()) <= MAX_NAMED_WORKSPACES


def _is_not_negative(seconds: int | None) -> bool:
    return (seconds or 0) >= 0


_INVALID_KEY = "Failed to create API key."
_SKILL: FieldRule[str] = FieldRule(
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
            FieldRule("required", bool, lambda: (("2026-01-01T00:00:00Z",), (None,)), _explain_no_time),
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
        "scope": (
            explained(_explain_scope, ("", "all", "workspace:read"), ("zzz", "All"), _INVALID_KEY, listed=False),
        ),
        "scopes": (
            explained(
                explain_scopes,
                ([], ["workspace:read"]),
                (["workspace:fly"], ["workspace:read", ""]),
                _INVALID_KEY,
                listed=False,
            ),
        ),
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
    UpdateWorkspaceBuildStateRequest: {"state": (BYTES,)},
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
                    _are_few,
                    f"At most {MAX_NAMED_WORKSPACES}; without a list every workspace is meant.",
                ),
                ([], [NIL_UUID] * MAX_NAMED_WORKSPACES),
                ([NIL_UUID] * (MAX_NAMED_WORKSPACES + 1),),
            ),
        ),
        "lifetime_seconds": (explained(unless(_is_not_negative, "A lifetime cannot be negative."), (0, 1), (-1,)),),
    },
}
"""Requests whose services have texts of their own and check them themselves: after permissions, or together with stored
state."""
