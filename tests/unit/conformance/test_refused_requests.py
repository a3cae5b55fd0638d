"""Slightly wrong requests: status, message, and the faulty field.

`tests/data/api/refused_requests.tsv` is one table for all routes, for one deployment; no request changes it. Names in
braces are filled in; an empty body is none.
"""

from __future__ import annotations

import csv
import json
from typing import Any
from uuid import UUID

from coder.coderd.store.templates import template_versions
from tests.kit.server.server_process import ROOT
from tests.kit.server.workspaces import build, new_workspace, workspace_world

TABLE = ROOT / "tests" / "data" / "api" / "refused_requests.tsv"


def _rows(names: dict[str, str]) -> list[dict[str, str]]:
    with TABLE.open() as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    for row in rows:
        for name, result in names.items():
            row["path"], row["body"] = (row[key].replace("{" + name + "}", result) for key in ("path", "body"))
    return rows


async def test_refusals_match_recordings() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world)
        latest = workspace["latest_build"]
        names = {
            "workspace": workspace["id"],
            "build": latest["id"],
            "version": latest["template_version_id"],
            "template": workspace["template_id"],
            "agent": latest["resources"][0]["agents"][0]["id"],
        }
        for row in _rows(names):
            body = {"json": json.loads(row["body"])} if row["body"] else {}
            response = await world.request(row["method"], f"/api/v2{row['path']}", **body)
            assert (response.status_code, response.json()["message"]) == (int(row["status"]), row["message"]), row
            first = (response.json().get("validations") or [{}])[0]
            reported = f"{first['field']}: {first['detail']}" if first else ""
            assert reported.startswith(row["validation"]) if row["validation"] else not reported, (row, reported)
        assert (await world.get(f"/api/v2/workspaces/{workspace['id']}")).json()["latest_build"]["id"] == latest["id"]


async def test_archived_version_is_refused() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world)
        old = workspace["latest_build"]["template_version_id"]
        await build(world, workspace["id"], "delete")
        await world.ctx.db.run(_archive, old)
        refused = await world.post("/api/v2/users/me/workspaces", {"name": "x", "template_version_id": old})
        assert (refused.status_code, refused.json()["message"]) == (
            400,
            "Archived template versions cannot be used to make a workspace.",
        )


async def _archive(tx: Any, version_id: str) -> None:
    await template_versions.update_version(tx, UUID(version_id), archived=True)
