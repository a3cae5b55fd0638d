"""The statuses of builds and agents exist twice, as rules and as SQL: both must agree."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any
from uuid import UUID, uuid4

from coder.coderd.services.agents.agent_view import status_of
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning import resources as resource_store
from coder.coderd.store.workspaces import builds as build_store
from coder.coderd.store.workspaces import system_workspaces
from coder.coderd.store.workspaces import workspace_search as search_store
from coder.coderd.store.workspaces import workspaces as workspace_store
from coder.coderd.store.workspaces.workspace_search import WorkspaceReaders, WorkspaceSearch
from coder.domain.agents.agents import STATUSES
from coder.domain.workspaces.builds import TRANSITIONS, WORKSPACE_STATUSES
from tests.kit.server.workspaces import new_workspace, workspace_world

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
ALL_READERS = WorkspaceReaders(True, (), UUID(int=0), ())


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


JOBS = [
    {"started_at": started, "completed_at": completed, "canceled_at": canceled, "error": error}
    for started, completed, canceled, error in product((None, NOW), (None, NOW), (None, NOW), ("", "oops"))
]
AGENTS = [
    {
        "created_at": created,
        "first_connected_at": last,
        "last_connected_at": last,
        "disconnected_at": gone,
        "connection_timeout_seconds": timeout,
    }
    for created, last, gone, timeout in product(
        (ago(10), ago(120), ago(500)), (None, ago(1), ago(29), ago(30), ago(31)), (None, ago(0.5), ago(30)), (0, 120)
    )
]


async def test_search_finds_every_status() -> None:
    async with workspace_world() as (world, _):
        await new_workspace(world, "w")
        builds, agents = await world.ctx.db.run(_populate)
        for status in WORKSPACE_STATUSES:
            result = await _names(world, WorkspaceSearch(status=status))
            assert {name for name in result if name in builds} == {n for n, s in builds.items() if s == status}, status
        for agent_status in STATUSES:
            result = await _names(world, WorkspaceSearch(agent_statuses=[agent_status]))
            assert {name for name in result if name in agents} == {n for n, s in agents.items() if s == agent_status}, (
                agent_status
            )


async def _names(world: Any, which: WorkspaceSearch) -> set[str]:
    page = await world.ctx.db.read(search_store.list_views, which, ALL_READERS, now=NOW)
    assert page.count == len(page.views)
    return {view.workspace.name for view in page.views}


async def _populate(tx: Any) -> tuple[dict[str, str], dict[str, str]]:
    """Copy the one workspace; return name -> status by the rules."""
    page = await search_store.list_views(tx, WorkspaceSearch(), ALL_READERS, now=NOW)
    view = page.views[0]
    builds: dict[str, str] = {}
    for number, (transition, job) in enumerate(product(TRANSITIONS, JOBS)):
        name = f"b{number}"
        await _copy(tx, view, name, transition, job, None)
        stored = await system_workspaces.get_view_by_name(tx, view.workspace.owner_id, name)
        assert stored is not None
        builds[name] = stored.latest.status
    agents: dict[str, str] = {}
    for number, facts in enumerate(AGENTS):
        row = await _copy(tx, view, f"a{number}", "start", {}, facts)
        agents[f"a{number}"] = status_of(row, NOW)
    return builds, agents


async def _copy(tx: Any, view: Any, name: str, transition: str, job: dict[str, Any], facts: Any) -> Any:
    workspace_id, build_id, job_id = uuid4(), uuid4(), uuid4()
    await job_store.insert_job(tx, replace(view.latest.job, id=job_id, **job))
    await workspace_store.insert_workspace(tx, replace(view.workspace, id=workspace_id, name=name))
    build = replace(view.latest.build, id=build_id, job_id=job_id, workspace_id=workspace_id, transition=transition)
    await build_store.insert_build(tx, build, state=None, parameters={})
    if facts is None:
        return None
    (detail,) = await agent_store.list_agents_of_jobs(tx, [view.latest.job.id])
    resource = next(
        row
        for row in await resource_store.list_resources(tx, [view.latest.job.id])
        if row.id == detail.agent.resource_id
    )
    await resource_store.insert_resources(tx, [copied := replace(resource, id=uuid4(), job_id=job_id)])
    row = replace(detail.agent, id=uuid4(), job_id=job_id, resource_id=copied.id, auth_token=uuid4(), **facts)
    await agent_store.insert_agents(tx, [row])
    return row
