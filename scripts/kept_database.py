"""Store a database of this release, so that later releases can test that they migrate it.

scripts/keep-database runs this. It writes tests/data/databases/<release>-<schema>.backup, as `coder server backup`
does, and next to it the data that a test requires.
"""

# ruff: noqa: E402
from __future__ import annotations

import json
import sys
from pathlib import Path

import trio

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from coder.base.version import BUILD_VERSION
from coder.coderd.store.engine.backup import Programs, write_backup
from coder.coderd.store.engine.migrate import known_revisions
from tests.kit.agents.scripted_agent import connected_agent, workspace_world

FOLDER = ROOT / "tests/data/databases"


async def keep() -> None:
    target = FOLDER / f"{BUILD_VERSION}-{known_revisions()[-1]}.backup"
    target.unlink(missing_ok=True)
    FOLDER.mkdir(exist_ok=True)
    async with workspace_world() as view:
        world = view.world
        _, member = await world.member("bob")
        body = {"token_name": "kept", "lifetime": 10**18}
        created = await world.post("/api/v2/users/me/keys/tokens", body, token=member)
        assert created.status_code == 201, created.text
        group = await world.post(f"/api/v2/organizations/{world.organization_id}/groups", {"name": "crew"})
        assert group.status_code == 201, group.text
        async with connected_agent(view):
            pass
        url = world.ctx.config.postgres_url.reveal()
        await write_backup(url, target, Programs(Path()), "")
        facts = {
            "agent_token": view.token,
            "agent_id": str(view.agent_id),
            "workspace": view.workspace["name"],
            "member_token": created.json()["key"],
        }
    target.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n")
    print(f"{target} ({target.stat().st_size // 1024} KiB)")


if __name__ == "__main__":
    trio.run(keep)
