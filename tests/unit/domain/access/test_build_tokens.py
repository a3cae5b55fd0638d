"""Roles that the session token of a workspace build carries."""

from __future__ import annotations

import itertools
from uuid import UUID, uuid4

from coder.domain.access.build_tokens import BuildRoles, is_token_name, narrow, roles_of_build, token_name
from coder.domain.access.policy import Object, Subject, decide
from coder.domain.access.resources import ACTIONS
from coder.domain.access.roles import ORGANIZATION_ROLES, SITE_ROLES, BuiltinRole, grants

TEMPLATES, OTHER, FOREIGN = uuid4(), uuid4(), uuid4()
OWNER, SOMEBODY = uuid4(), uuid4()
CUSTOM = BuiltinRole(
    "custom",
    organization=grants("workspace:read template:update"),
    organization_denied=grants("workspace:delete"),
    member=grants("workspace:ssh"),
)
MEMBERSHIPS = ("organization-workspace-access", "agents-access", "custom")


def _owner(site: frozenset[str] = frozenset(SITE_ROLES), roles: frozenset[str] | None = None) -> Subject:
    names = frozenset(ORGANIZATION_ROLES) - {"organization-workspace-creation-ban"} | {"custom"}
    names = names if roles is None else roles
    return Subject(
        "user",
        OWNER,
        site_roles=site,
        organization_roles=dict.fromkeys((TEMPLATES, OTHER), names),
        custom_roles={(organization, "custom"): CUSTOM for organization in (TEMPLATES, OTHER)},
    )


def _objects() -> list[tuple[str, Object]]:
    return [
        (action, Object(kind, "x", owner_id=owner, organization_id=organization))
        for kind, actions in ACTIONS.items()
        for action in sorted(actions)
        for owner, organization in itertools.product((None, OWNER, SOMEBODY), (None, TEMPLATES, OTHER, FOREIGN))
    ]


def test_token_carries_template_organization_only() -> None:
    owner = _owner()
    expected = _owner(frozenset())
    member = _owner(frozenset(), frozenset(MEMBERSHIPS))
    without_grants = BuiltinRole("custom", organization_denied=CUSTOM.organization_denied, member=CUSTOM.member)
    member = Subject(
        "user",
        OWNER,
        organization_roles=member.organization_roles,
        custom_roles=dict.fromkeys(member.custom_roles, without_grants),
    )
    token = narrow(owner, TEMPLATES, BuildRoles.ORGANIZATION)
    wrong = []
    for action, target in _objects():
        inside = target.organization_id == TEMPLATES
        allowed = decide(token, action, target)
        # Organization roles with a site grant let their holder read users, in the template's organization as well.
        if target.kind == "user" and action == "read":
            assert allowed
        elif allowed != decide(expected if inside else member, action, target):
            wrong.append((action, target))
    assert not wrong, wrong[:5]
    assert token.lost_roles and token.narrowed_to == TEMPLATES


def test_token_of_other_builds_token_is_members() -> None:
    """A token of one organization that starts a build in another gains no administrator role there."""
    roles = roles_of_build(is_full=True, requested_within=OTHER, organization_id=TEMPLATES)
    token = narrow(_owner(), TEMPLATES, roles)
    others = [
        (action, target)
        for action, target in _objects()
        if target.owner_id == SOMEBODY and target.organization_id == TEMPLATES and decide(token, action, target)
    ]
    everyone = narrow(_owner(frozenset(), frozenset()), TEMPLATES, BuildRoles.MEMBER)
    assert all(decide(everyone, action, target) for action, target in others), others
    again = roles_of_build(is_full=True, requested_within=token.narrowed_to, organization_id=TEMPLATES)
    assert (roles, again) == (BuildRoles.MEMBER, BuildRoles.MEMBER)
    assert roles_of_build(is_full=True, requested_within=TEMPLATES, organization_id=TEMPLATES) == "organization"
    assert roles_of_build(is_full=True, requested_within=None, organization_id=TEMPLATES) == "all"


def test_members_lose_nothing() -> None:
    owner = _owner(frozenset(), frozenset({"organization-workspace-access", "organization-workspace-creation-ban"}))
    owner = Subject("user", OWNER, organization_roles=owner.organization_roles)
    token = narrow(owner, TEMPLATES, BuildRoles.ORGANIZATION)
    assert not token.lost_roles
    assert (token.organization_roles, token.site_roles) == (owner.organization_roles, owner.site_roles)
    assert narrow(_owner(), TEMPLATES, BuildRoles.ALL) == _owner()
    assert not narrow(_owner(), TEMPLATES, "unknown").site_roles


def test_names_of_builds_tokens() -> None:
    assert is_token_name(token_name(UUID(int=1), UUID(int=2)))
    assert not is_token_name(f"{UUID(int=1)}_{UUID(int=2)}_oauth_session_token")
