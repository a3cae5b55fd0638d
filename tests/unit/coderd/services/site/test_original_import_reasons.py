"""Import of an original's database: values that do not arrive are reported, and none grants more than before."""

# ruff: noqa: S608 (names and values of these tests)
from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from coder.coderd.services.site.original_import import Kind, Report
from tests.kit.original.database import execute
from tests.kit.original.importing import both, run_dry, run_import
from tests.kit.original.rows import ident


def kind_of(report: Report, name: str) -> Kind:
    return next(kind for kind in report.kinds if kind.kind == name)


REFUSED = {
    "member_permissions": '[{"negate": true, "resource_type": "template", "action": "read"}]',
    "site_permissions": '[{"negate": true, "resource_type": "template", "action": "read"}]',
    "user_permissions": '[{"negate": true, "resource_type": "template", "action": "read"}]',
    "org_permissions": '[{"negate": "yes", "resource_type": "template", "action": "read"}]',
}
"""Permissions of roles that would grant more here, by column."""


async def test_denying_role_is_refused() -> None:
    """A role without its denial would grant more than at the original."""
    grant = '[{"negate": null, "resource_type": "user", "action": "read"}]'
    async with both() as (source, target):
        for name, column, permissions in (
            *((f"no-{column[:4]}", column, text) for column, text in REFUSED.items()),
            ("no-kind", "org_permissions", '[{"negate": false, "action": "read"}]'),
            ("no-list", "org_permissions", '{"negate": true, "resource_type": "template", "action": "read"}'),
            ("wide", "user_permissions", grant),
        ):
            await execute(
                source,
                "CREATE TABLE late AS SELECT * FROM custom_roles WHERE name = 'auditor'",
                f"UPDATE late SET id = gen_random_uuid(), name = '{name}', {column} = '{permissions}'",
                "INSERT INTO custom_roles SELECT * FROM late",
                "DROP TABLE late",
                "SELECT 1",
            )
        await execute(
            source,
            "UPDATE users SET rbac_roles = '{owner,wizard}' WHERE username = 'ana'",
            "UPDATE organization_members SET roles = '{auditor,no-site,organization-admin}' "
            f"WHERE user_id = '{ident('users', 0)}'",
            "UPDATE organizations SET default_org_member_roles = '{no-list}' WHERE name = 'coder'",
            "SELECT 1",
        )
        foretold = await run_dry(source)
        report = await run_import(source, target)
        kind = kind_of(report, "custom_roles")
        assert kind == kind_of(foretold, "custom_roles")
        assert (kind.rows, kind.taken) == (9, 2)
        refused, _ = kind.not_taken
        assert refused.examples == ["no-kind", "no-list", "no-memb", "no-org_", "no-site", "no-user"]
        assert refused.count == 6
        assert "denies permissions" in refused.reason
        assert [item.examples for item in kind.changed] == [["wide"]]
        assert await execute(target, "SELECT name FROM custom_roles ORDER BY 1") == [("auditor",), ("wide",)]
        unknown = {
            kind.kind: item.examples
            for kind in report.kinds
            for item in kind.changed
            if "roles that do not exist" in item.reason
        }
        assert unknown == {"organizations": ["coder"], "users": ["ana"], "organization_members": ["ana"]}


async def test_unreadable_access_is_reported() -> None:
    """Actions of no role: the least role that has them grants others, too."""
    lists = {
        "workspaces": {"1": {"permissions": ["read", "ssh"]}, "2": {"permissions": "*"}, "3": ["*"], "4": []},
        "templates": {"1": ["read"], "2": ["use", "read"], "3": {"permissions": ["*"]}, "4": None},
    }
    async with both() as (source, target):
        for table, given in lists.items():
            await execute(source, f"UPDATE {table} SET user_acl = '{json.dumps(given)}', group_acl = '17'", "SELECT 1")
        foretold = await run_dry(source)
        report = await run_import(source, target)
        for table, expected in (("workspaces", {"3": "admin"}), ("templates", {"2": "use", "3": "admin"})):
            stored = await execute(target, f"SELECT DISTINCT user_acl, group_acl FROM {table}")
            assert [(json.loads(users), json.loads(groups)) for users, groups in stored] == [(expected, {})]
            kind = kind_of(report, table)
            assert kind == kind_of(foretold, table)
            assert [(item.reason.split()[0], item.count) for item in kind.changed] == [
                ("user_acl", 2),
                ("group_acl", 2),
            ]


ZERO, LAST = datetime(1, 1, 1), datetime(9999, 12, 31, tzinfo=UTC)  # the first one is naive in the driver
TIMES = {
    "0044-03-15 12:00:00+00 BC": ZERO,
    "-infinity": ZERO,
    "infinity": LAST,
    "12026-01-01 00:00:00+00": LAST,
}
"""Times that Python does not have, and what is stored."""


@pytest.mark.parametrize(
    "time", [*list(TIMES)[::2], *(pytest.param(time, marks=pytest.mark.soak) for time in list(TIMES)[1::2])]
)
async def test_time_beyond_python_is_reported(time: str) -> None:
    dev = "FROM workspaces WHERE name = 'Dev'"
    async with both() as (source, target):
        await execute(
            source,
            f"UPDATE workspaces SET created_at = '{time}', deleting_at = '{time}' WHERE name = 'Dev'",
            f"UPDATE workspace_builds SET deadline = '{time}' WHERE workspace_id = (SELECT id {dev})",
            f"UPDATE users SET last_seen_at = '{time}' WHERE username = 'ana'",
            "SELECT 1",
        )
        foretold = await run_dry(source)
        report = await run_import(source, target)
        changed = [(kind.kind, item.reason) for kind in report.kinds for item in kind.changed]
        assert {(kind, reason.split()[0]) for kind, reason in changed if "in the years 1 to 9999" in reason} == {
            ("users", "last_seen_at"),
            ("workspaces", "created_at"),
            ("workspaces", "deleting_at"),
            ("workspace_builds", "deadline"),
        }
        assert [kind.changed for kind in foretold.kinds] == [kind.changed for kind in report.kinds]
        stored = TIMES[time]
        # A workspace that is never deleted must not be overdue here.
        assert await execute(target, f"SELECT created_at, deleting_at {dev}") == [(stored, stored)]
        assert await execute(
            target, f"SELECT deadline FROM workspace_builds WHERE workspace_id = (SELECT id {dev})"
        ) == [(None,)]


async def test_bound_token_is_reported() -> None:
    async with both() as (source, target):
        await execute(source, "UPDATE oauth2_provider_app_tokens SET audience = 'https://api.example.com'", "SELECT 1")
        kind = kind_of(await run_import(source, target), "oauth2_provider_app_tokens")
        assert [item.examples for item in kind.changed] == [["https://api.example.com"]] * bool(kind.taken)
        assert kind.taken
