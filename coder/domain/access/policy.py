"""Permission checks: one pure function over tables, called by every service.

The order is upstream's: a site grant decides; else a denial of the organization decides; else a grant of the
organization, of membership with ownership, of ownership, or of the object's access list. A key's scope can only narrow
its owner's permissions. Functions here do not raise: services turn `False` into 403 or 404.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal
from uuid import UUID

from coder.domain.access.roles import (
    IMPLICIT_ORGANIZATION_ROLE,
    IMPLICIT_SITE_ROLE,
    ORGANIZATION_ROLES,
    SITE_ROLES,
    BuiltinRole,
    Grants,
)

NIL = UUID(int=0)
Kind = Literal["user", "agent", "provisioner", "proxy", "system"]


@dataclass(frozen=True, slots=True)
class Object:
    """One existing object."""

    kind: str
    id: str
    owner_id: UUID | None = None
    organization_id: UUID | None = None
    any_organization: bool = False
    """Whether roles of any organization of the subject apply: files belong to none."""
    user_acl: Mapping[str, frozenset[str]] = field(default_factory=dict)
    "User id -> actions."
    group_acl: Mapping[str, frozenset[str]] = field(default_factory=dict)
    "Group id -> actions; Everyone has its organization's id."


@dataclass(frozen=True, slots=True)
class Class:
    """A class of objects: all of a kind, of an owner, or of an organization. New objects are asked for by class."""

    kind: str
    owner_id: UUID | None = None
    organization_id: UUID | None = None
    any_organization: bool = False
    """Whether the question is "in any organization at all"."""
    narrowed: bool = False
    """Whether the caller narrows its result to `allowed_ids`. Otherwise a key that lists single objects is refused.

    Only kinds of `LISTABLE` are narrowed."""
    user_acl: Mapping[str, frozenset[str]] = field(default_factory=dict)
    "Access list of the objects in question: user id -> actions."
    group_acl: Mapping[str, frozenset[str]] = field(default_factory=dict)
    "Group id -> actions; Everyone has its organization's id."


Target = Object | Class
"""Object of a permission check."""


@dataclass(frozen=True, slots=True)
class KeyScope:
    """Upper bound of the uses of a key."""

    name: str
    grants: Grants
    allow: frozenset[tuple[str, str]] | None = None
    """Objects the key is limited to, as (type, id), either of which may be `*`; None means any."""


ALL = KeyScope("all", {"*": frozenset({"*"})})
APPLICATION_CONNECT = KeyScope("application_connect", {"workspace": frozenset({"application_connect"})})
NO_USER_DATA = KeyScope("no_user_data", {"user": frozenset()})

_ALSO_LISTED_AS = {"workspace_dormant": "workspace", "prebuilt_workspace": "workspace"}
"""A dormant or prebuilt workspace still matches the entry that listed it as a workspace."""
_WORKSPACES = frozenset({"workspace", *_ALSO_LISTED_AS})
LISTABLE = frozenset(
    {
        *_WORKSPACES,
        "file",
        "group",
        "group_member",
        "oauth2_app",
        "oauth2_app_secret",
        "organization",
        "organization_member",
        "provisioner_daemon",
        "task",
        "template",
        "user",
        "user_secret",
        "user_skill",
        "workspace_proxy",
    }
)
"""Kinds whose objects are checked one at a time, by an id that an allow list can hold.

A key that lists single objects of another kind reaches none of that kind: no check could tell them apart."""
_ENTERING = frozenset({"ssh", "application_connect"})
OTHERS_WORKSPACES: Grants = {"workspace": _ENTERING, "workspace_dormant": _ENTERING}
"""Grants that `--disable-owner-workspace-access` removes from site roles: entering workspaces of other owners."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Subject of a permission check."""

    kind: Kind
    user_id: UUID = NIL
    username: str = ""
    site_roles: frozenset[str] = frozenset()
    organization_roles: Mapping[UUID, frozenset[str]] = field(default_factory=dict)
    """Organizations the subject is a member of, with the roles assigned there (implicit ones left out)."""
    group_ids: frozenset[UUID] = frozenset()
    scope: KeyScope = ALL
    custom_roles: Mapping[tuple[UUID, str], BuiltinRole] = field(default_factory=dict)
    key_id: str = ""
    """Id of the API key used; empty for other credentials."""
    agent_id: UUID | None = None
    workspace_id: UUID | None = None
    narrowed_to: UUID | None = None
    """Organization whose administrator roles a build's limited token carries, NIL for none; None for everything else
    (`build_tokens.py`)."""
    lost_roles: bool = False
    """Whether the owner has roles that the token lacks."""
    site_denied: Grants = field(default_factory=dict)
    """Actions that site roles do not grant in this deployment, whatever their tables list."""
    shares_workspaces: bool = True
    """Whether sharing is enabled in this deployment; if not, access lists of workspaces are ignored."""

    @property
    def is_owner(self) -> bool:
        """Return whether the subject has the site role `owner`."""
        return "owner" in self.site_roles


SYSTEM = Subject("system", username="system")
"""The server itself: loops, provisioner daemons it started. Every action is allowed."""


def decide(subject: Subject, action: str, target: Target) -> bool:
    """Return whether `subject` may do `action` to `target`."""
    if subject.kind == "system":
        return True
    return _scope_allows(subject, action, target) and _roles_allow(subject, action, target)


def allowed_organizations(
    subject: Subject, action: str, kind: str, *, narrowed: bool = False
) -> frozenset[UUID] | None:
    """Return the organizations in which `action` is granted on all owners' objects; None means all of them.

    Lists filter by these, together with `owner_id == subject.user_id` and the access lists. `narrowed` is that of
    `Class`.
    """
    if subject.kind == "system":
        return None
    if not _scope_allows(subject, action, Class(kind, narrowed=narrowed)):
        return frozenset()
    if _site_allows(subject, action, kind):
        return None
    return frozenset(
        organization
        for organization in subject.organization_roles
        if _roles_allow(subject, action, Class(kind, organization_id=organization))
    )


def scope_allows(subject: Subject, action: str, kind: str) -> bool:
    """Return whether the subject's key reaches objects of this kind at all, for lists narrowed to `allowed_ids`."""
    return subject.kind == "system" or _scope_allows(subject, action, Class(kind, narrowed=True))


def key_allows(subject: Subject, action: str, target: Target) -> bool:
    """Return whether the subject's key alone allows `action` on `target`, whatever its owner's roles are.

    For targets that are open to more callers than the roles say, such as the members of one's own organization.
    """
    return subject.kind == "system" or _scope_allows(subject, action, target)


def key_reaches(scope: KeyScope, name: str) -> bool:
    """Return whether a key of this scope grants `name` (such as `workspace:read`) on any object at all."""
    kind, _, action = name.partition(":")
    if not granted(scope.grants, action, kind):
        return False
    return scope.allow is None or _listed(scope.allow, action, Class(kind, narrowed=True))


def _roles_allow(subject: Subject, action: str, target: Target) -> bool:
    kind = target.kind
    if _site_allows(subject, action, kind):
        return True
    owns = target.owner_id is not None and target.owner_id == subject.user_id
    organizations = _organizations(subject, target)
    for organization in organizations:
        roles = _organization_roles(subject, organization)
        if any(granted(role.organization_denied, action, kind) for role in roles):
            continue
        if any(granted(role.organization, action, kind) for role in roles):
            return True
        if owns and any(granted(role.member, action, kind) for role in roles):
            return True
        if owns and any(granted(role.user, action, kind) for role in _site_roles(subject)):
            return True
        if _acl_allows(subject, action, target):
            return True
    if target.organization_id is None and not target.any_organization:
        return owns and any(granted(role.user, action, kind) for role in _site_roles(subject))
    return False


def _site_allows(subject: Subject, action: str, kind: str) -> bool:
    if subject.site_denied and granted(subject.site_denied, action, kind):
        return False
    for role in _site_roles(subject):  # noqa: SIM110 - a page asks for each of its rows: no generator around this one
        if granted(role.site, action, kind):
            return True
    return False


def _organizations(subject: Subject, target: Target) -> Iterable[UUID]:
    if target.any_organization:
        return subject.organization_roles
    organization = target.organization_id
    return (organization,) if organization is not None and organization in subject.organization_roles else ()


def _site_roles(subject: Subject) -> Iterable[BuiltinRole]:
    for name in subject.site_roles:
        role = SITE_ROLES.get(name)
        if role is not None:
            yield role
    if subject.kind != "provisioner":
        yield SITE_ROLES[IMPLICIT_SITE_ROLE]
    for names in subject.organization_roles.values():
        for name in names:
            role = ORGANIZATION_ROLES.get(name)
            if role is not None and role.site:
                yield role


def _organization_roles(subject: Subject, organization: UUID) -> list[BuiltinRole]:
    roles = [ORGANIZATION_ROLES[IMPLICIT_ORGANIZATION_ROLE]]
    for name in subject.organization_roles.get(organization, ()):
        role = ORGANIZATION_ROLES.get(name) or subject.custom_roles.get((organization, name))
        if role is not None:
            roles.append(role)
    return roles


def _acl_allows(subject: Subject, action: str, target: Target) -> bool:
    if not subject.shares_workspaces and target.kind in _WORKSPACES:
        return False
    own = target.user_acl.get(str(subject.user_id), frozenset())
    if action in own or "*" in own:
        return True
    groups = {str(group) for group in subject.group_ids}
    if target.organization_id is not None and target.organization_id in subject.organization_roles:
        groups.add(str(target.organization_id))
    return any(action in actions or "*" in actions for group, actions in target.group_acl.items() if group in groups)


def _scope_allows(subject: Subject, action: str, target: Target) -> bool:
    scope = subject.scope
    if scope is ALL:
        return True
    if not (granted(scope.grants, action, target.kind)):
        return False
    return scope.allow is None or _listed(scope.allow, action, target)


def _listed(allow: frozenset[tuple[str, str]], action: str, target: Target) -> bool:
    """Return whether a key's allow list reaches `target`.

    An entry for one object reaches that object, and a class only if the caller narrows its result to the entries,
    which it can for kinds of `LISTABLE`. An object about to be created has no id that could be listed.
    """
    kinds = {"*", target.kind, _ALSO_LISTED_AS.get(target.kind, "")}
    if isinstance(target, Object):
        return any((kind, identity) in allow for kind in kinds for identity in ("*", target.id))
    is_narrowed = target.narrowed and target.kind in LISTABLE and action != "create"
    return any(kind in kinds and (identity == "*" or is_narrowed) for kind, identity in allow)


def allowed_ids(subject: Subject, kind: str) -> frozenset[str] | None:
    """Return the ids of a kind that the subject's key is limited to; None means all. Lists narrow by these."""
    allow = subject.scope.allow
    if allow is None:
        return None
    own_ids = [identity for listed, identity in allow if listed in {"*", kind}]
    return None if "*" in own_ids else frozenset(own_ids)


def lists_one(subject: Subject, identity: UUID, kinds: Iterable[str]) -> bool:
    """Return whether the subject's key includes an object as one of `kinds`, whatever its scopes are."""
    listed = [allowed_ids(subject, kind) for kind in kinds]
    return any(ids is None or str(identity) in ids for ids in listed)


def granted(table: Grants, action: str, kind: str) -> bool:
    """Return whether a table of grants contains this action."""
    for key in (kind, "*"):
        actions = table.get(key)
        if actions is not None and (action in actions or "*" in actions):
            return True
    return False
