"""A deployment's worth of rows, written by the store's own tables: what `scripts/bench api` measures against.

Lives here: users, templates, workspaces with a stopped and a running build, their resources, agents, apps, scripts,
and some of everything else that has a list. Everything a row points at exists; nothing of it was ever built.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Table, insert, text, update

from coder.coderd.store.engine.database import Database, Tx
from coder.coderd.store.tables import (
    agents,
    audit,
    builds,
    jobs,
    people,
    provisioners,
    resources,
    templates,
    workspaces,
)


@dataclass
class Population:
    """What was made, for those who ask about it."""

    organization_id: UUID
    owner_id: UUID
    user_ids: list[UUID] = field(default_factory=list)
    template_ids: list[UUID] = field(default_factory=list)
    version_ids: list[UUID] = field(default_factory=list)
    workspace_ids: list[UUID] = field(default_factory=list)
    agent_ids: list[UUID] = field(default_factory=list)
    job_ids: list[UUID] = field(default_factory=list)
    group_id: UUID = field(default_factory=uuid4)
    rows: dict[Table, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, table: Table, **values: Any) -> UUID:
        """A row to insert; its id."""
        key: UUID = values.setdefault("id", uuid4()) if "id" in table.c else uuid4()
        self.rows[table].append(values)
        return key


async def populate(
    db: Database, organization_id: UUID, owner_id: UUID, *, workspace_count: int, user_count: int, template_count: int
) -> Population:
    """Writes everything. The first user must exist."""
    made = Population(organization_id, owner_id)
    now = datetime.now(UTC)
    _users(made, user_count, now)
    _templates(made, template_count, now)
    for number in range(workspace_count):
        _workspace(made, number, now)
    _daemons(made, now)
    await db.run(_write, made)
    await db.read(_analyze)
    return made


async def connect_agents(db: Database, made: Population, count: int) -> None:
    """Lets the first `count` agents look connected for an hour, as their links would keep saying."""
    await db.run(_connect, made.agent_ids[:count])


async def rename(db: Database, workspace_id: UUID, owner_id: UUID, ttl: int) -> None:
    """A change watchers are told of."""
    from coder.coderd.store.workspaces.change_feed import notify_change

    async def change(tx: Tx) -> None:
        table = workspaces.workspaces
        await tx.execute(update(table).where(table.c.id == workspace_id).values(ttl_ms=ttl))
        await notify_change(tx, "settings", owner_id=owner_id, workspace_id=workspace_id)

    await db.run(change)


async def _write(tx: Tx, made: Population) -> None:
    order = [table for table in people.users.metadata.sorted_tables if table in made.rows]
    for table in order:
        # one statement takes the columns of its first row
        by_shape: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
        for row in made.rows[table]:
            by_shape[tuple(sorted(row))].append(row)
        for rows in by_shape.values():
            await tx.execute(insert(table), rows)
    made.rows.clear()


async def _analyze(tx: Tx) -> None:
    await tx.execute(text("ANALYZE"))


async def _connect(tx: Tx, ids: list[UUID]) -> None:
    table = agents.workspace_agents
    now = datetime.now(UTC)
    values = {
        "first_connected_at": now,
        "last_connected_at": now + timedelta(hours=1),
        "lifecycle_state": "ready",
        "started_at": now,
    }
    await tx.execute(update(table).where(table.c.id.in_(ids)).values(**values, ready_at=now, version="v2.34.0"))


# ---- people


def _users(made: Population, count: int, now: datetime) -> None:
    made.user_ids.append(made.owner_id)
    made.add(
        people.groups, id=made.group_id, organization_id=made.organization_id, name="makers", display_name="Makers"
    )
    for number in range(1, count):
        name = f"user-{number:03}"
        key = made.add(
            people.users,
            email=f"{name}@example.com",
            username=name,
            name=f"User {number}",
            created_at=now,
            updated_at=now,
            last_seen_at=now,
            status="active",
        )
        made.user_ids.append(key)
        made.add(
            people.organization_members,
            organization_id=made.organization_id,
            user_id=key,
            created_at=now,
            updated_at=now,
        )
        if number % 2:
            made.add(people.group_members, group_id=made.group_id, user_id=key)
    for number in range(60):
        _token(made, number, now)
        _entries(made, number, now)


def _token(made: Population, number: int, now: datetime) -> None:
    made.add(
        people.api_keys,
        id=f"bench{number:05}",
        user_id=made.owner_id,
        hashed_secret=b"-" * 32,
        last_used=now,
        expires_at=now + timedelta(days=7),
        created_at=now,
        updated_at=now,
        login_type="token",
        lifetime_seconds=604800,
        ip_address="127.0.0.1",
        token_name=f"token-{number}",
        scopes=["coder:all"],
        allow_list=["*:*"],
    )


def _entries(made: Population, number: int, now: datetime) -> None:
    made.add(
        audit.audit_logs,
        time=now - timedelta(minutes=number),
        user_id=made.owner_id,
        organization_id=made.organization_id,
        resource_type="user",
        resource_id=made.user_ids[-1],
        resource_target="user",
        action="write",
        status_code=200,
        request_id=uuid4(),
    )


# ---- templates


def _job(made: Population, kind: str, now: datetime, **rest: Any) -> UUID:
    key = made.add(
        jobs.provisioner_jobs,
        created_at=now,
        updated_at=now,
        started_at=now,
        completed_at=now,
        organization_id=made.organization_id,
        initiator_id=made.owner_id,
        provisioner="terraform",
        file_id=_file(made),
        type=kind,
        tags={"scope": "organization", "owner": ""},
        **{"input": {}, **rest},
    )
    made.job_ids.append(key)
    return key


def _file(made: Population) -> UUID:
    kept = made.rows[templates.files]
    if not kept:
        made.add(
            templates.files,
            hash="0" * 64,
            created_at=datetime.now(UTC),
            created_by=made.owner_id,
            mimetype="application/x-tar",
            data=b"-" * 10_240,
        )
    key: UUID = kept[0]["id"]
    return key


def _templates(made: Population, count: int, now: datetime) -> None:
    for number in range(count):
        template, versions = uuid4(), [uuid4() for _ in range(6)]
        made.add(
            templates.templates,
            id=template,
            organization_id=made.organization_id,
            name=f"template-{number:02}",
            display_name=f"Template {number}",
            description="For the benchmark",
            icon="/icon/docker.png",
            provisioner="terraform",
            active_version_id=versions[-1],
            created_by=made.owner_id,
            created_at=now,
            updated_at=now,
            group_acl={str(made.organization_id): "use"},
        )
        for step, version in enumerate(versions):
            made.add(
                templates.template_versions,
                id=version,
                template_id=template,
                organization_id=made.organization_id,
                name=f"v{step}",
                message="",
                readme="# Readme",
                job_id=_job(made, "template_version_import", now),
                created_by=made.owner_id,
                created_at=now + timedelta(seconds=step),
                updated_at=now,
            )
        made.template_ids.append(template)
        made.version_ids.append(versions[-1])


# ---- workspaces


def _workspace(made: Population, number: int, now: datetime) -> None:
    owner = made.user_ids[number % len(made.user_ids)]
    place = number % len(made.template_ids)
    template, version = made.template_ids[place], made.version_ids[place]
    workspace, latest = uuid4(), uuid4()
    made.workspace_ids.append(workspace)
    made.add(
        workspaces.workspaces,
        id=workspace,
        created_at=now,
        updated_at=now,
        owner_id=owner,
        organization_id=made.organization_id,
        template_id=template,
        name=f"workspace-{number:04}",
        last_used_at=now,
        ttl_ms=28_800_000,
        latest_build_id=latest,
    )
    for step, (build, transition) in enumerate(((uuid4(), "start"), (uuid4(), "stop"), (latest, "start")), 1):
        moment = now - timedelta(minutes=60 - step)
        job = _job(made, "workspace_build", moment, input={"workspace_build_id": str(build)})
        made.add(
            builds.workspace_builds,
            id=build,
            created_at=moment,
            updated_at=moment,
            workspace_id=workspace,
            template_version_id=version,
            build_number=step,
            transition=transition,
            initiator_id=owner,
            job_id=job,
        )
        for name in ("cpu", "region"):
            made.add(builds.workspace_build_parameters, workspace_build_id=build, name=name, value="2")
        _resources(made, job, transition, moment, current=build == latest)


def _resources(made: Population, job: UUID, transition: str, now: datetime, *, current: bool) -> None:
    facts = [{"key": "size", "value": "10 GB", "sensitive": False}, {"key": "zone", "value": "a", "sensitive": False}]
    made.add(
        resources.workspace_resources,
        created_at=now,
        job_id=job,
        transition=transition,
        type="docker_volume",
        name="home",
        metadata=facts,
    )
    if transition != "start":
        return
    box = made.add(
        resources.workspace_resources,
        created_at=now,
        job_id=job,
        transition=transition,
        type="docker_container",
        name="box",
        metadata=facts,
        position=1,
    )
    agent = made.add(
        agents.workspace_agents,
        created_at=now,
        updated_at=now,
        resource_id=box,
        job_id=job,
        name="main",
        auth_token=uuid4(),
        architecture="amd64",
        operating_system="linux",
        connection_timeout_seconds=120,
        environment_variables={"A": "b"},
        display_apps=["vscode", "web_terminal", "ssh_helper"],
    )
    if current:
        made.agent_ids.append(agent)
    for name in ("code-server", "preview", "docs"):
        made.add(
            agents.workspace_apps,
            created_at=now,
            agent_id=agent,
            slug=name,
            display_name=name,
            icon="/icon/code.svg",
            url="http://localhost:13337",
            subdomain=True,
            health="healthy",
            healthcheck_url="http://localhost:13337/healthz",
            healthcheck_interval=5,
            healthcheck_threshold=6,
        )
    source = uuid4()
    made.add(
        agents.workspace_agent_log_sources, agent_id=agent, id=source, created_at=now, display_name="Startup Script"
    )
    made.add(
        agents.workspace_agent_scripts,
        agent_id=agent,
        created_at=now,
        log_source_id=source,
        script="echo start",
        run_on_start=True,
        display_name="Startup Script",
    )


def _daemons(made: Population, now: datetime) -> None:
    for number in range(30):
        made.add(
            provisioners.provisioner_daemons,
            created_at=now,
            name=f"daemon-{number}",
            provisioners=["terraform"],
            organization_id=made.organization_id,
            last_seen_at=now,
            version="v2.34.0",
            api_version="1.0",
            tags={"scope": "organization", "owner": ""},
            key_id=UUID("00000000-0000-0000-0000-000000000001"),
        )
