"""`why`: it agrees with the dispatcher; its permissions; the command that shows it."""

from __future__ import annotations

import io
import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
import trio
from sqlalchemy import update

from coder.base.clock import FakeClock
from coder.base.ids import new_uuid
from coder.cli import main
from coder.cli.core import session
from coder.cli.provisioning import no_provisioner
from coder.coderd.services.provisioning.reaping import reap
from coder.coderd.services.provisioning.waiting_jobs import load_waiting
from coder.coderd.store.provisioning import provisioners
from coder.coderd.store.provisioning.jobs import JobRow, acquire_job, insert_job, update_job
from coder.coderd.store.provisioning.provisioners import DaemonRow
from coder.coderd.store.tables.jobs import provisioner_jobs as table
from coder.coderd.store.templates import files
from coder.coderd.store.templates.files import FileRow
from coder.domain.provisioning.jobs import PENDING_AFTER
from coder.domain.provisioning.provisioners import BUILT_IN_KEY
from coder.domain.provisioning.tags import normalize_tags
from tests.kit.provisioners.scripted_provisioner import (
    connected_daemon,
    ended,
    new_template,
    new_version,
    working_daemon,
)
from tests.kit.server.server_in_process import World, running_coderd

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class UndoneError(Exception):
    pass


def random_tags(choose: random.Random) -> dict[str, str]:
    tags = {key: choose.choice(["a", "b"]) for key in ("place", "gpu") if choose.random() < 0.4}
    return normalize_tags(choose.choice(["ada", "bob"]), tags, {"scope": "user"} if choose.random() < 0.2 else {})


async def random_daemon(world: World, choose: random.Random) -> DaemonRow:
    row = DaemonRow(
        id=new_uuid(),
        organization_id=UUID(world.organization_id),
        # A deleted key.
        key_id=choose.choice([BUILT_IN_KEY, BUILT_IN_KEY, BUILT_IN_KEY, UUID(int=77)]),
        created_at=NOW,
        last_seen_at=choose.choice([NOW, NOW, NOW - timedelta(hours=1)]),
        name=f"daemon-{choose.random()}",
        version="v2",
        api_version="1.18",
        provisioners=sorted(choose.sample(["terraform", "echo"], choose.choice([1, 2]))),
        tags=random_tags(choose),
    )
    return await world.ctx.db.run(provisioners.upsert_daemon, row, new_uuid())  # type: ignore[arg-type]


async def random_job(world: World, choose: random.Random, file_id: UUID, workers: list[DaemonRow]) -> JobRow:
    running = choose.random() < 0.25
    job = JobRow(
        id=new_uuid(),
        created_at=NOW + timedelta(seconds=choose.randrange(9)),
        updated_at=NOW,
        started_at=NOW if running else None,
        completed_at=None,
        canceled_at=None,
        error="",
        error_code="",
        organization_id=UUID(world.organization_id),
        initiator_id=UUID(world.user_id),
        provisioner=choose.choice(["terraform", "echo"]),
        file_id=file_id,
        type="template_version_import",
        input={"template_version_id": str(new_uuid())},
        worker_id=choose.choice(workers).id if running else None,
        tags=random_tags(choose),
        priority=choose.choice([0, 0, 1]),
        logs_length=0,
        logs_overflowed=False,
    )
    await world.ctx.db.run(insert_job, job)
    return job


async def rolled_back(world: World, act: Any) -> Any:
    """Return the result of a transaction that is rolled back."""
    explanation: list[Any] = []

    async def run(tx: Any) -> None:
        explanation.append(await act(tx))
        raise UndoneError

    with pytest.raises(UndoneError):
        await world.ctx.db.run(run)
    return explanation[0]


async def take(tx: Any, row: DaemonRow, *, strict: bool) -> UUID | None:
    job = await acquire_job(
        tx,
        organization_id=row.organization_id,
        provisioners=row.provisioners,
        tags=row.tags,
        worker_id=row.id,
        now=NOW,
        strict=strict,
    )
    return job.id if job else None


async def test_why_agrees_with_dispatcher() -> None:
    choose = random.Random(7)
    async with running_coderd(first_user=True, clock=FakeClock(NOW)) as world:
        file = FileRow(new_uuid(), "0" * 64, UUID(world.user_id), NOW, "application/x-tar", b"")
        await world.ctx.db.run(files.keep_file, file, io.BytesIO())
        daemons = [await random_daemon(world, choose) for _ in range(8)]
        jobs = [await random_job(world, choose, file.id, daemons) for _ in range(16)]
        waiting = [job for job in jobs if job.started_at is None]
        assert len(waiting) > 6
        verdicts = set()
        for job in waiting:
            strict = choose.random() < 0.5
            explanation = await world.ctx.db.read(load_waiting, job.id, NOW, strict)
            verdicts.add(explanation.verdict)
            codes = {reason.daemon.id: reason for reason in explanation.reasons}
            assert codes.keys() == {row.id for row in daemons}

            async def alone(tx: Any, job: JobRow = job, strict: bool = strict) -> set[UUID]:
                await tx.execute(update(table).where(table.c.id != job.id).values(completed_at=NOW))
                takers = set()
                for row in daemons:
                    if await take(tx, row, strict=strict) == job.id:
                        takers.add(row.id)
                        await update_job(tx, job.id, started_at=None, worker_id=None)
                return takers

            assert await rolled_back(world, alone) == {ident for ident, one in codes.items() if one.may_take}
            if explanation.verdict == "starts_now":
                idle = [row for row in daemons if codes[row.id].code == "ready"]
                idle += [row for row in daemons if row not in idle and _is_idle(row, jobs)]
                choose.shuffle(idle)

                async def all_poll(tx: Any, idle: list[DaemonRow] = idle, strict: bool = strict) -> set[UUID | None]:
                    return {await take(tx, row, strict=strict) for row in idle}

                assert job.id in await rolled_back(world, all_poll)
        assert len(verdicts) >= 3


def _is_idle(row: DaemonRow, jobs: list[JobRow]) -> bool:
    busy = {job.worker_id for job in jobs if job.started_at is not None}
    return row.last_seen_at == NOW and row.id not in busy and row.key_id == BUILT_IN_KEY


def path_of(world: World, version: Any, tail: str = "why") -> str:
    return f"/api/v2/organizations/{world.organization_id}/provisionerjobs/{version['job']['id']}/{tail}"


async def test_why_depends_on_permission() -> None:
    async with running_coderd(first_user=True) as world:
        _, admin = await world.member("boss", ["owner"])
        _, stranger = await world.member("eve")
        version = await new_version(world, tags={"gpu": "yes"})
        async with connected_daemon(world, name="plain"):
            why = (await world.get(path_of(world, version))).json()
            assert (why["verdict"], why["queue_position"], why["expected_start"]) == ("nobody", 0, None)
            assert why["no_expected_start"] == "there is no provisioner that may ever run it"
            (reason,) = why["daemons"]
            assert (reason["daemon_name"], reason["code"], reason["tag"]) == ("plain", "lacks_tag", "gpu")
            assert reason["message"] == "lacks tag gpu=yes"
            assert why["remedy"]["command"] == "coder provisioner start --tag gpu=yes"
            assert why["remedy"]["nearest"] == "plain lacks tag gpu=yes"
            assert (await world.get(path_of(world, version), token=admin)).status_code == 200
            assert (await world.get(path_of(world, version), token=stranger)).status_code == 404
            assert (await world.get(path_of(world, version), token="")).status_code == 401
            unknown = {"job": {"id": str(new_uuid())}}
            assert (await world.get(path_of(world, unknown))).status_code == 404
            async with connected_daemon(world, name="gpu", tags={"gpu": "yes"}) as daemon:
                job = await daemon.acquire()
                running = (await world.get(path_of(world, version))).json()
                assert (running["verdict"], running["worker_name"]) == ("not_waiting", "gpu")
                second = await new_version(world, tags={"gpu": "yes"})
                pending = (await world.get(path_of(world, second))).json()
                assert (pending["verdict"], pending["queue_position"], pending["queue_size"]) == ("queued", 1, 1)
                assert (pending["daemons"][0]["code"], pending["daemons"][0]["busy_with"]) == ("busy", job.job_id)
                assert "needed for a forecast" in pending["no_expected_start"]


async def test_workspace_owner_sees_no_names() -> None:
    async with running_coderd(first_user=True) as world:
        _, alice = await world.member("alice")
        async with working_daemon(world, name="worker"):
            template = await new_template(world)
            await ended(world, f"/api/v2/templateversions/{template['active_version_id']}")
        body = {"name": "ws", "template_id": template["id"]}
        workspace = await world.post("/api/v2/users/me/workspaces", body, token=alice)
        assert workspace.status_code == 201, workspace.text
        why = (await world.get(path_of(world, workspace.json()["latest_build"]), token=alice)).json()
        assert [daemon["daemon_name"] for daemon in why["daemons"]] == ["a provisioner"]
        assert why["daemons"][0]["daemon_id"] == str(UUID(int=0))


async def test_parked_jobs_are_not_reaped() -> None:
    clock = FakeClock(NOW)
    async with running_coderd(first_user=True, clock=clock) as world:
        parked = await new_version(world, tags={"gpu": "yes"})
        plain = await new_version(world, tags={"gpu": "yes"})
        _, stranger = await world.member("eve")
        body = {"parked": True}
        assert (await world.put(path_of(world, parked, "parked"), body, token=stranger)).status_code == 404
        done = await world.put(path_of(world, parked, "parked"), body)
        assert done.status_code == 204 and await world.left_an_entry(done)
        clock.advance(PENDING_AFTER.total_seconds() + 1)
        assert [str(job.id) for job in await reap(world.ctx)] == [plain["job"]["id"]]
        assert (await world.get(path_of(world, parked))).json()["parked"] is True
        refused = await world.put(path_of(world, plain, "parked"), body)
        assert refused.status_code == 400


async def run_command(world: World, folder: Any, *arguments: str) -> int:
    """Run the command line in a thread of this process."""
    shared = ["--url", world.url, "--token", world.token, "--global-config", str(folder)]
    workspace: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        # A process that ends closes its connections; this process continues.
        patch.setattr(session, "client", lambda *args: workspace.append(client_of(*args)) or workspace[-1])
        try:
            return await trio.to_thread.run_sync(main.main, [*shared, *arguments])
        finally:
            for client in workspace:
                client.close()


client_of = session.client


async def test_why_command(tmp_path: Any, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    async with running_coderd(first_user=True) as world:
        version = await new_version(world, tags={"gpu": "yes"})
        job = version["job"]["id"]
        async with connected_daemon(world, name="plain"):
            assert await run_command(world, tmp_path, "provisioner", "jobs", "why", job) == 0
            output = capsys.readouterr().out
            assert "No provisioner may run this job" in output
            assert "plain        lacks tag gpu=yes" in output
            assert "  coder provisioner start --tag gpu=yes\n" in output
            assert await run_command(world, tmp_path, "provisioner", "jobs", "list", "-o", "json", "-s", "pending") == 0
            (listed,) = json.loads(capsys.readouterr().out)
            assert (listed["id"], listed["organization_name"]) == (job, "Coder")
            assert await run_command(world, tmp_path, "provisioner", "jobs", "list") == 0
            head, row = capsys.readouterr().out.splitlines()
            assert head.split("  ")[0] == "CREATED AT"
            assert "0/0" in row
            assert await run_command(world, tmp_path, "provisioner", "jobs", "cancel", job) == 0
            assert capsys.readouterr().out == "Job canceled\n"
            assert (await world.get(f"/api/v2/templateversions/{version['id']}")).json()["job"]["status"] == "canceled"

            monkeypatch.setattr(no_provisioner, "GRACE", 0)
            (tmp_path / "t").mkdir()
            (tmp_path / "t" / "main.tf").write_text("")
            push = ("templates", "push", "t1", "-y", "-d", str(tmp_path / "t"), "--provisioner-tag", "gpu=yes")
            assert await run_command(world, tmp_path, *push) == 1
            output = capsys.readouterr().err
            assert "start one: coder provisioner start --tag gpu=yes" in output
            assert "plain lacks tag gpu=yes" in output
            assert "--wait-for-provisioner" in output
            jobs = (await world.get(f"/api/v2/organizations/{world.organization_id}/provisionerjobs")).json()
            assert jobs[0]["status"] == "canceled"


async def test_key_commands(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    async with running_coderd(first_user=True) as world:
        assert await run_command(world, tmp_path, "provisioner", "keys", "list") == 0
        assert capsys.readouterr().err == "No provisioner keys found\n"
        assert await run_command(world, tmp_path, "provisioner", "keys", "create", "K1", "--tag", "gpu=yes") == 0
        output = capsys.readouterr().out.splitlines()
        assert output[0].startswith("Successfully created provisioner key k1!")
        assert len(output[-1]) == 43
        assert await run_command(world, tmp_path, "provisioner", "keys", "list", "-o", "json") == 0
        (key,) = json.loads(capsys.readouterr().out)
        assert key["tags"] == {"gpu": "yes"}
        assert await run_command(world, tmp_path, "provisioner", "keys", "create", "k1") == 1
        assert "already exists" in capsys.readouterr().err
        assert await run_command(world, tmp_path, "provisioner", "keys", "delete", "k1", "-y") == 0
        assert await run_command(world, tmp_path, "provisioner", "keys", "delete", "k1", "-y") == 1
