"""Databases of earlier releases, kept as backups: this release restores, migrates and uses them.

`scripts/keep-database` creates one; every release adds its own, and so does a schema that has changed much since the
last one. None is ever changed.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from coder.base.errors import CoderError
from coder.base.secret import Secret
from coder.base.version import BUILD_VERSION
from coder.coderd.app import open_server
from coder.coderd.config.settings import ServerConfig
from coder.coderd.store.engine import backup
from coder.coderd.store.engine.database import open_database
from coder.coderd.store.engine.migrate import known_revisions, migrate
from tests.kit.agents.scripted_agent import AgentWorld, connected_agent
from tests.kit.api.http_clients import http_client
from tests.kit.programs.command_line import run_cli
from tests.kit.server.postgres_server import fresh_database
from tests.kit.server.server_in_process import FIRST_USER, World

BEHIND = 15
"""Revisions the schema may be ahead of the newest kept database: each migration needs earlier data to be tested
with."""
FOLDER = Path(__file__).resolve().parents[4] / "data/databases"
KEPT = sorted(FOLDER.glob("*.backup"))
each = pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.stem)


@asynccontextmanager
async def restored(kept: Path, folder: Path) -> AsyncIterator[str]:
    """Yield the URL of a database in the state that release left."""
    manifest = backup.read_backup(kept, folder / "dump")
    assert kept.stem == f"{manifest.version}-{manifest.revision}"
    async with fresh_database(migrated=False) as url:
        await backup.load_backup(url, folder / "dump", manifest, backup.Programs(folder))
        yield url


@asynccontextmanager
async def running(url: str) -> AsyncIterator[World]:
    config = ServerConfig(
        http_address="127.0.0.1:0",
        postgres_url=Secret(url),
        provisioner_daemons=0,
        dangerous_disable_rate_limits=True,
        derp_server_stun_addresses=("disable",),
    )
    async with open_server(config, None) as server, http_client(server.url) as client:
        yield World(server, client)


def test_recent_release_is_kept() -> None:
    releases = {path.stem.rpartition("-")[0] for path in KEPT}
    assert BUILD_VERSION in releases, "run scripts/keep-database"


def test_newest_kept_database_is_recent() -> None:
    revisions = known_revisions()
    newest = max(revisions.index(path.stem.rpartition("-")[2]) for path in KEPT)
    assert len(revisions) - 1 - newest <= BEHIND, "run scripts/keep-database"


@each
async def test_database_upgrade(kept: Path, tmp_path: Path) -> None:
    facts = json.loads(kept.with_suffix(".json").read_text())
    async with restored(kept, tmp_path) as url:
        async with open_database(url) as database:
            await migrate(database)
        revision, rows = await backup.count_rows(url)
        assert revision == known_revisions()[-1] and rows["users"] >= 2
        async with running(url) as world:
            await _people(world, facts)
            await _agent(world, facts)


async def _people(world: World, facts: Any) -> None:
    """Check that passwords, tokens and permissions are unchanged, and that new rows can be written."""
    world.token = await world.login(FIRST_USER["email"], FIRST_USER["password"])
    names = [user["username"] for user in (await world.get("/api/v2/users")).json()["users"]]
    assert {"admin", "bob"} <= set(names)
    member = await world.get("/api/v2/users/me", token=facts["member_token"])
    assert (member.status_code, member.json()["username"]) == (200, "bob")
    assert [t["name"] for t in (await world.get("/api/v2/templates")).json()]
    organization = (await world.get("/api/v2/organizations/default")).json()["id"]
    groups = (await world.get(f"/api/v2/organizations/{organization}/groups")).json()
    assert "crew" in {group["name"] for group in groups}
    world.organization_id = organization
    await world.member("carol")


async def _agent(world: World, facts: Any) -> None:
    """Check that an agent from before the upgrade reconnects with its old token, speaking an older minor."""
    result = (await world.get("/api/v2/workspaces")).json()["workspaces"]
    (workspace,) = [item for item in result if item["name"] == facts["workspace"]]
    view = AgentWorld(world, workspace, UUID(facts["agent_id"]), facts["agent_token"])
    async with connected_agent(view, version="2.0"):
        assert (await view.agent())["id"] == facts["agent_id"]


@each
async def test_going_back(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that does not know the schema changes nothing and explains the downgrade; so does its `restore`."""
    from coder.coderd.store.engine import migrate as module

    older = known_revisions()[:1]
    async with restored(kept, tmp_path) as url:
        before = await backup.count_rows(url)
        monkeypatch.setattr(module, "known_revisions", lambda: older)
        async with open_database(url) as database:
            with pytest.raises(CoderError) as refused:
                await migrate(database)
        assert refused.value.code == "schema_newer" and "coder server restore FILE" in refused.value.hint
        assert await backup.count_rows(url) == before
    monkeypatch.setattr(backup, "known_revisions", lambda: older)
    run = await run_cli(["server", "restore", str(kept), "-y"], home=tmp_path, env={"CODER_CONFIG_DIR": "new"})
    assert run.code == 1 and "newer release (v" in run.stderr
