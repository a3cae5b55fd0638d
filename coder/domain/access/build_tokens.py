"""Permissions of session tokens that workspace builds get, and of keys created with them.

A template's author and the administrators of its organization can read the token of a build. So it carries what its
owner may do as a member of organizations, and administrator roles of the template's organization only: never site
roles, never administrator roles of other organizations.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from uuid import UUID

from coder.domain.access.policy import NIL, Subject
from coder.domain.access.roles import ORGANIZATION_ROLES, BuiltinRole


class BuildRoles(StrEnum):
    """Roles that a build's token carries."""

    ALL = "all"
    "All roles of its owner: the template's setting allows it."
    ORGANIZATION = "organization"
    "Member rights, and the owner's administrator roles in the organization of the build."
    MEMBER = "member"
    "Member rights only: a build's token of another organization requested the build."


@dataclass(frozen=True, slots=True)
class KeptRoles:
    """Roles of a user that a token carries."""

    site: frozenset[str]
    organization: Mapping[UUID, frozenset[str]]
    custom: Mapping[tuple[UUID, str], BuiltinRole]


NARROWED = "this token comes from a workspace build; run `coder login` for your own roles"
"""Reason for refusing what the owner could do by roles that the token does not carry."""


HIDDEN = "(hidden)"
"""Text in place of a value that a reader may not see."""
_TOKEN = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]{10}-[A-Za-z0-9]{22}(?![A-Za-z0-9])")
_NAME = re.compile(r"[0-9a-f-]{36}_[0-9a-f-]{36}_session_token")


def token_name(owner_id: UUID, workspace_id: UUID) -> str:
    """Return the name of the session token of a workspace's builds, which is upstream's."""
    return f"{owner_id}_{workspace_id}_session_token"


def is_token_name(name: str) -> bool:
    """Return whether a token of that name came from a build, possibly of an earlier version of the server."""
    return _NAME.fullmatch(name) is not None


def roles_of_build(*, is_full: bool, requested_within: UUID | None, organization_id: UUID) -> BuildRoles:
    """Return the roles for the token of a build.

    `is_full` is the template's setting. `requested_within` is `Subject.narrowed_to` of the token that requested the
    build, which may not create a stronger token; None for other requests.
    """
    if requested_within is None:
        return BuildRoles.ALL if is_full else BuildRoles.ORGANIZATION
    return BuildRoles.ORGANIZATION if requested_within == organization_id else BuildRoles.MEMBER


def narrow(subject: Subject, organization_id: UUID, roles: str | None) -> Subject:
    """Return the owner's subject with the roles that a token of a build in `organization_id` carries.

    An unknown value of `roles` carries member rights only.
    """
    if roles == BuildRoles.ALL:
        return subject
    administered = organization_id if roles == BuildRoles.ORGANIZATION else NIL
    kept = _kept(subject, administered)
    lost = subject.site_roles or kept.organization != subject.organization_roles or kept.custom != subject.custom_roles
    return replace(
        subject,
        site_roles=kept.site,
        organization_roles=kept.organization,
        custom_roles=kept.custom,
        narrowed_to=administered,
        lost_roles=bool(lost),
    )


def _kept(subject: Subject, organization_id: UUID) -> KeptRoles:
    custom = {
        (organization, name): role if organization == organization_id else replace(role, site={}, organization={})
        for (organization, name), role in subject.custom_roles.items()
    }
    organizations = {
        organization: names if organization == organization_id else frozenset(filter(_is_member_role, names))
        for organization, names in subject.organization_roles.items()
    }
    return KeptRoles(frozenset(), organizations, custom)


def _is_member_role(name: str) -> bool:
    """Return whether a role grants nothing on other users' objects. Custom roles lose such grants instead."""
    role = ORGANIZATION_ROLES.get(name)
    return role is None or not (role.site or role.organization)


def find_tokens(text: str) -> set[str]:
    """Return the texts in `text` that have the form of a session token."""
    return set(_TOKEN.findall(text))


def mask_tokens(text: str, tokens: Collection[str] | None = None) -> str:
    """Replace these session tokens; for None, everything that has the form of one."""

    def replacement(match: re.Match[str]) -> str:
        return HIDDEN if tokens is None or match[0] in tokens else match[0]

    return _TOKEN.sub(replacement, text)
