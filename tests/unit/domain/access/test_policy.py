"""Permissions by role and level."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from coder.domain.access import scopes
from coder.domain.access.policy import (
    LISTABLE,
    OTHERS_WORKSPACES,
    SYSTEM,
    Class,
    Object,
    Subject,
    Target,
    allowed_organizations,
    decide,
    key_reaches,
)
from coder.domain.access.resources import ACTIONS
from coder.domain.access.roles import SITE_ROLES

ORG, OTHER_ORG = UUID(int=1), UUID(int=2)
BANNED = ("organization-workspace-access", "organization-workspace-creation-ban")
ME, THEM = UUID(int=11), UUID(int=12)


def person(*site: str, org: tuple[str, ...] = ("organization-workspace-access",), **rest: object) -> Subject:
    return Subject(
        "user",
        ME,
        "me",
        frozenset(site),
        {ORG: frozenset(org)},
        **rest,  # type: ignore[arg-type]
    )


def workspace(owner: UUID, organization: UUID = ORG, **rest: object) -> Target:
    return Object("workspace", "w", owner, organization, **rest)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("subject", "action", "resource", "expected"),
    [
        (person(), "create", workspace(ME), True),
        (person(), "ssh", workspace(ME), True),
        (person(), "read", workspace(THEM), False),
        (person(), "create", workspace(ME, OTHER_ORG), False),
        (person(org=()), "create", workspace(ME), False),
        (person(org=BANNED), "create", workspace(ME), False),
        (person(org=BANNED), "read", workspace(ME), True),
        (person("owner"), "delete", workspace(THEM, OTHER_ORG), True),
        (person("owner"), "update", Class("prebuilt_workspace"), True),
        (person("template-admin"), "read", workspace(THEM), True),
        (person("template-admin"), "update", workspace(THEM), False),
        (person("template-admin"), "create", Class("template", organization_id=ORG), True),
        (person("user-admin"), "create", Class("user"), True),
        (person("user-admin"), "read", Class("audit_log"), False),
        (person("auditor"), "read", Class("audit_log"), True),
        (person("auditor"), "update", Class("user", owner_id=THEM), False),
        (person(), "read", Class("user", owner_id=ME), True),
        (person(), "read", Class("user", owner_id=THEM), False),
        (person(), "update", Class("user", owner_id=ME), False),
        (person(), "update_personal", Class("user", owner_id=ME), True),
        (person(), "create", Class("api_key", owner_id=ME), True),
        (person(), "create", Class("api_key", owner_id=THEM), False),
        (person(), "read", Class("organization", organization_id=ORG), True),
        (person(), "read", Class("organization", organization_id=OTHER_ORG), False),
        (person(org=("organization-admin",)), "delete", workspace(THEM), True),
        (person(org=("organization-admin",)), "ssh", workspace(THEM), False),
        (person(org=("organization-admin",)), "delete", workspace(THEM, OTHER_ORG), False),
        (person(), "create", Class("file", owner_id=ME, any_organization=True), True),
        (person(), "read", Class("file", owner_id=THEM, any_organization=True), False),
        (SYSTEM, "delete", workspace(THEM), True),
    ],
)
def test_decide(subject: Subject, action: str, resource: Target, expected: bool) -> None:
    assert decide(subject, action, resource) is expected


def test_access_lists_grant_beyond_roles() -> None:
    shared = workspace(THEM, user_acl={str(ME): frozenset({"read", "ssh"})})
    assert decide(person(), "ssh", shared)
    assert not decide(person(), "delete", shared)
    everyone = Object("template", "t", organization_id=ORG, group_acl={str(ORG): frozenset({"use", "read"})})
    assert decide(person(), "use", everyone)
    outsider = Subject("user", THEM, "them", frozenset(), {OTHER_ORG: frozenset()})
    assert not decide(outsider, "use", everyone)


def test_disabled_sharing_ignores_workspace_lists() -> None:
    acl = {str(ME): frozenset({"read", "ssh"})}
    alone = person(shares_workspaces=False)
    for kind in ("workspace", "workspace_dormant"):
        shared = Object(kind, "w", THEM, ORG, user_acl=acl, group_acl={str(ORG): frozenset({"*"})})
        assert decide(person(), "ssh", shared)
        assert not decide(alone, "ssh", shared) and not decide(alone, "read", shared)
    assert decide(alone, "read", Object("template", "t", organization_id=ORG, user_acl=acl))


def test_owners_denied_others_workspaces() -> None:
    owner = person("owner", site_denied=OTHERS_WORKSPACES)
    for action in ("ssh", "application_connect"):
        assert decide(person("owner"), action, workspace(THEM))
        assert not decide(owner, action, workspace(THEM))
        assert decide(owner, action, workspace(ME))
        assert decide(owner, action, workspace(THEM, user_acl={str(ME): frozenset({action})}))
    assert decide(owner, "delete", workspace(THEM))


def test_a_scope_only_narrows() -> None:
    reader = person("owner", scope=scopes.combined(["workspace:read"]))
    assert decide(reader, "read", workspace(THEM))
    assert not decide(reader, "delete", workspace(ME))
    assert not decide(reader, "read", Class("user", owner_id=ME))
    applications = person(scope=scopes.combined(["application_connect"]))
    assert decide(applications, "application_connect", workspace(ME))
    assert not decide(applications, "ssh", workspace(ME))
    listed = person(scope=scopes.combined(["workspace:read"], ["workspace:w"]))
    assert decide(listed, "read", workspace(ME))
    assert not decide(listed, "read", Object("workspace", "other", ME, ORG))
    assert scopes.combined(["coder:all"]) is scopes.ALL
    assert decide(person("owner", scope=scopes.combined(["no_such:thing"])), "read", workspace(ME)) is False


def test_lists_filter_by_organization() -> None:
    assert allowed_organizations(person("template-admin"), "read", "workspace") is None
    assert allowed_organizations(person(org=("organization-template-admin",)), "read", "workspace") == {ORG}
    assert allowed_organizations(person(), "read", "workspace") == frozenset()


def test_site_roles_include_member_grants() -> None:
    for role in SITE_ROLES:
        assert decide(person(role), "read", Class("user", owner_id=ME))


def test_listed_objects_hide_their_class() -> None:
    key = person("owner", scope=scopes.combined(["coder:all"], ["user_secret:s"]))
    assert decide(key, "read", Object("user_secret", "s", owner_id=ME))
    assert not decide(key, "read", Object("user_secret", "other", owner_id=ME))
    assert not decide(key, "read", Class("user_secret", owner_id=ME))
    assert decide(key, "read", Class("user_secret", owner_id=ME, narrowed=True))
    assert not decide(key, "create", Class("user_secret", owner_id=ME, narrowed=True))


@pytest.mark.parametrize("kind", sorted(ACTIONS))
def test_class_of_every_kind(kind: str) -> None:
    for action in sorted(ACTIONS[kind]):
        listed = person("owner", scope=scopes.combined(["coder:all"], [f"{kind}:{uuid4()}"]))
        assert not decide(listed, action, Class(kind, ME, ORG)), action
        assert allowed_organizations(listed, action, kind) == frozenset(), action
        whole = person("owner", scope=scopes.combined(["coder:all"], [f"{kind}:*"]))
        assert decide(whole, action, Class(kind, ME, ORG)) == decide(person("owner"), action, Class(kind, ME, ORG))


@pytest.mark.parametrize("kind", sorted(ACTIONS))
def test_narrowed_class_of_every_kind(kind: str) -> None:
    """A key that lists a single object reaches a narrowed class only where objects are checked one at a time."""
    scope = scopes.combined(["coder:all"], [f"{kind}:{uuid4()}"])
    for action in sorted(ACTIONS[kind] - {"create"}):
        reaches = decide(person("owner", scope=scope), action, Class(kind, ME, ORG, narrowed=True))
        assert reaches <= (kind in LISTABLE), action
        assert key_reaches(scope, f"{kind}:{action}") == (kind in LISTABLE), action
    assert not key_reaches(scope, f"{kind}:create")
