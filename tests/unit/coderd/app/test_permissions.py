"""Read permissions, role by role, against the recorded matrix (tests/data/api/recorded/permissions.tsv).

Only GET rows whose path needs no object except users and the default organization; missing routes are left out, as are
rows that a licence or an experiment refuses to every caller.
"""

from __future__ import annotations

import csv

from tests.conformance.bodies import QUERIES
from tests.kit.paths import DATA
from tests.kit.server.server_in_process import World, running_coderd

MATRIX = DATA / "api" / "recorded" / "permissions.tsv"
_SIGNED_OUT = "anonymous"
_NEEDS_MORE = {"/api/v2/users/{user}/autofill-parameters"}  # recorded with a template
_WORSE = {"500": {403, 404}}  # this release's 500s are actually refusals


def _rows() -> list[dict[str, str]]:
    with MATRIX.open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    callers = [name for name in rows[0] if name not in {"method", "path", "object_owner"}]
    return [
        row
        for row in rows
        if row["method"] == "GET"
        and row["path"] not in _NEEDS_MORE
        and " " not in row["path"]
        and not all(row[name] == "403" for name in callers if name != _SIGNED_OUT)
    ]


def _path(row: dict[str, str]) -> str:
    user = {"self": "me", "other": "victim", "owner": "admin"}.get(row["object_owner"], "me")
    query = QUERIES.get(row["path"], "")
    path = row["path"].replace("{user}", user).replace("{organization}", "default")
    return f"{path}?{query}" if query else path


async def _tokens(world: World, callers: list[str]) -> dict[str, str]:
    tokens = {_SIGNED_OUT: "", "owner": world.token}
    await world.member("victim")
    for number, caller in enumerate(callers):
        if caller in tokens:
            continue
        user_id, tokens[caller] = await world.member(f"caller{number}")
        if caller == "member":
            continue
        path = f"/api/v2/users/{user_id}/roles"
        if caller.startswith("organization-"):
            path = f"/api/v2/organizations/default/members/{user_id}/roles"
        changed = await world.put(path, {"roles": [caller]})
        assert changed.status_code == 200, changed.text
    return tokens


async def test_roles_read_their_routes() -> None:
    rows = _rows()
    callers = [name for name in rows[0] if name not in {"method", "path", "object_owner"}]
    wrong, cells = [], 0
    async with running_coderd(first_user=True) as world:
        tokens = await _tokens(world, callers)
        for row in rows:
            path = _path(row)
            if "{" in path:
                continue
            for caller in callers:
                answer = await world.get(path, token=tokens[caller])
                if "Route not found" in answer.text:
                    break
                cells += 1
                valid = answer.status_code in _WORSE.get(row[caller], {int(row[caller])})
                if not valid:
                    wrong.append(f"{path} as {caller}: {row[caller]} became {answer.status_code}")
    assert cells > 300
    assert not wrong, "\n".join(wrong)
