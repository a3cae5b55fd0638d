"""Links of daemons: admission, identity, and behaviour on failures."""

from __future__ import annotations

import hashlib
import os
from typing import Any
from uuid import UUID

import pytest
import trio
import trio.testing

from coder.base.clock import FakeClock
from coder.base.secret import Secret
from coder.coderd.rpc_endpoints import provisioners as links
from coder.coderd.rpc_endpoints.provisioners import connect_built_in
from coder.coderd.services.network import node_keys
from coder.coderd.services.provisioning.daemon_admission import DaemonAdmission
from coder.coderd.services.provisioning.daemon_health_checks import write_health
from coder.coderd.services.provisioning.daemon_registration import Introduction, Presence, register
from coder.coderd.store.provisioning import daemon_health
from coder.domain.provisioning.jobs import REVOKED_ERROR, REVOKED_LINE
from coder.domain.provisioning.provisioners import PSK_KEY
from coder.mesh.keys import PrivateKey
from coder.net.errors import HttpError
from coder.rpc.errors import RpcClosed, RpcError
from coder.rpc.proto import overlay_pb2, provisioner_pb2, provisionerd_pb2, tailnet_pb2
from tests.kit.agents.scripted_agent import eventually
from tests.kit.provisioners.scripted_provisioner import (
    Answers,
    FakeDaemon,
    agent,
    connected_daemon,
    ended,
    line,
    new_template,
    new_version,
    resource,
    serve_path,
    working_daemon,
)
from tests.kit.server.server_in_process import World, running_coderd
from tests.kit.server.workspaces import build, build_answer, new_workspace, workspace_world

DAEMONS = "/api/v2/organizations/default/provisionerdaemons"
KEYS = "/api/v2/organizations/default/provisionerkeys"


async def refusal(world: World, **query: Any) -> HttpError:
    with pytest.raises(HttpError) as caught:
        async with connected_daemon(world, **query):
            pass
    return caught.value


async def status_of(world: World, version: dict[str, Any]) -> str:
    return str((await world.get(f"/api/v2/templateversions/{version['id']}")).json()["job"]["status"])


async def test_checks_come_in_their_order() -> None:
    async with running_coderd(first_user=True) as world:
        bad_everything = {"tags": ["no-separator"], "kinds": (), "version": "9.9", "token": ""}
        assert (await refusal(world, **bad_everything)).status == 400
        error = await refusal(world, **{**bad_everything, "tags": []})
        assert (error.status, error.message) == (400, "The provisioner query parameter must be specified.")
        error = await refusal(world, **{**bad_everything, "tags": [], "kinds": ("cook",)})
        assert (error.status, error.message) == (400, 'Unknown provisioner type "cook"')
        error = await refusal(world, token="", version="9.9", tags={"scope": "user"})
        assert error.status == 403
        assert error.message == 'You aren\'t allowed to create provisioner daemons with scope "user"'
        error = await refusal(world, tags={"a": "\x00"}, version="9.9")
        assert (error.status, error.message) == (400, "Given tags are not acceptable to the service")
        error = await refusal(world, version="1.19")
        assert (error.status, error.message) == (400, "Incompatible or unparsable version")
        assert (await refusal(world, organization="nowhere")).status == 404
        plain = await world.get(serve_path())
        assert plain.status_code == 426
        assert (await world.get(f"{DAEMONS}?offline=true")).json() == [], "who was refused is no daemon"


async def test_stranger_is_always_counted() -> None:
    """Also with names that the database refuses."""
    async with running_coderd(first_user=True, dangerous_disable_rate_limits=False) as world:
        for name in ("default", "nowhere", "%00", "a%00", "%C3%A9"):
            path = f"/api/v2/organizations/{name}/provisionerdaemons/serve"
            answer = await world.get(path, params={"provisioner": "terraform"}, token="")
            assert answer.status_code in {401, 403, 404}, (name, answer.text)
            assert "x-ratelimit-remaining" in answer.headers, name


async def test_user_serves_with_its_roles() -> None:
    async with running_coderd(first_user=True) as world:
        user_id, member = await world.member("alice")
        assert (await refusal(world, token=member)).status == 403
        async with connected_daemon(world, token=member, tags={"scope": "user"}, name="alices"):
            (daemon,) = (await world.get(DAEMONS)).json()
        assert daemon["tags"] == {"scope": "user", "owner": user_id}
        assert (daemon["name"], daemon["key_name"], daemon["status"]) == ("alices", "user-auth", "idle")
        _, admin = await world.member("tadm", ["template-admin"])
        async with connected_daemon(world, token=admin, name=None):
            assert len((await world.get(f"{DAEMONS}?offline=true")).json()) == 2
        narrow = {"token_name": "narrow", "scopes": ["workspace:read"], "lifetime": 3_600_000_000_000}
        key = (await world.post("/api/v2/users/me/keys/tokens", narrow, token=member)).json()["key"]
        assert (await refusal(world, token=key, tags={"scope": "user"})).status == 403
        listed = {**narrow, "token_name": "listed", "scopes": ["all"]}
        listed["allow_list"] = [f"template:{world.organization_id}"]
        key = (await world.post("/api/v2/users/me/keys/tokens", listed, token=member)).json()["key"]
        assert (await refusal(world, token=key, tags={"scope": "user"})).status == 403
        assert (await world.post("/api/v2/organizations", {"name": "elsewhere"})).status_code == 201
        other_organization = {"organization": "elsewhere", "tags": {"scope": "user"}}
        assert (await refusal(world, token=member, **other_organization)).status == 403


async def _statuses(world: World) -> dict[str, str]:
    result = (await world.get(f"{DAEMONS}?offline=true")).json()
    return {daemon["name"]: daemon["status"] for daemon in result}


async def _until(world: World, expected: dict[str, str]) -> None:
    with trio.fail_after(60):
        while await _statuses(world) != expected:
            await trio.sleep(0.02)


async def test_disconnected_daemon_is_offline() -> None:
    async with running_coderd(first_user=True) as world:
        async with connected_daemon(world, name="one"):
            await _until(world, {"one": "idle"})
        await _until(world, {"one": "offline"})
        async with connected_daemon(world, name="one"):
            await _until(world, {"one": "idle"})


async def test_daemon_of_any_name_reconnects() -> None:
    """The database has its own rule for lower case."""
    async with running_coderd(first_user=True) as world:
        for _ in range(2):
            async with connected_daemon(world, name="ÄRGER-İ"):
                (daemon,) = (await world.get(f"{DAEMONS}?offline=true")).json()
                assert daemon["name"] == "ÄRGER-İ"


async def test_only_newest_link_disconnects_daemon() -> None:
    """Whatever the clocks of two servers say: this test's clock stands still."""
    async with running_coderd(first_user=True, clock=FakeClock()) as world:
        ctx, organization = world.ctx, UUID(world.organization_id)
        admission = DaemonAdmission({}, PSK_KEY)
        introduction = Introduction("one", ["echo"], "", "")
        workers = [await register(ctx, organization, admission, introduction) for _ in range(2)]
        old, new = (Presence(ctx, worker) for worker in workers)
        await ctx.db.run(write_health, workers[1], daemon_health.record_answer, ctx.clock.now(), 0.1, {})
        # Neither polls nor the end of the old link affect the connected daemon; heartbeats of a lingering link do.
        await ctx.db.run(write_health, workers[0], daemon_health.record_silence, ctx.clock.now(), "no answer")
        (row,) = (await ctx.db.read(daemon_health.list_health)).values()
        assert (row.unreachable_since, row.problem) == (None, "")
        await old.keep()
        await old.end()
        assert await _statuses(world) == {"one": "idle"}
        await new.end()
        assert await _statuses(world) == {"one": "offline"}
        await old.keep()
        assert await _statuses(world) == {"one": "idle"}
        await old.end()
        assert await _statuses(world) == {"one": "offline"}


async def test_pre_shared_key() -> None:
    async with running_coderd(first_user=True, provisioner_daemon_psk=Secret("sesame")) as world:
        headers = {"Coder-Provisioner-Daemon-PSK": "sesame"}
        async with connected_daemon(world, token="", headers=headers, tags={"a": "b"}):
            (daemon,) = (await world.get(DAEMONS)).json()
        assert (daemon["key_name"], daemon["tags"]["a"]) == ("psk", "b")
        wrong = {"Coder-Provisioner-Daemon-PSK": "sesam"}
        assert (await refusal(world, token="", headers=wrong)).status == 403
        both = {**headers, "Coder-Provisioner-Daemon-Key": "x" * 43}
        assert (await refusal(world, token="", headers=both)).status == 403


async def test_empty_pre_shared_key_is_refused() -> None:
    async with running_coderd(first_user=True) as world:
        assert (await refusal(world, token="", headers={"Coder-Provisioner-Daemon-PSK": ""})).status == 403


async def test_provisioner_key_life_cycle() -> None:
    async with running_coderd(first_user=True) as world:
        created = await world.post(KEYS, {"name": "k1", "tags": {"region": "moon"}})
        assert created.status_code == 201
        secret = created.json()["key"]
        assert len(secret) == 43
        assert (await world.post(KEYS, {"name": "K1", "tags": {}})).status_code == 409
        assert (await world.post(KEYS, {"name": "built-in", "tags": {}})).status_code == 400
        assert (await world.post(KEYS, {"name": "", "tags": {}})).status_code == 400
        headers = {"Coder-Provisioner-Daemon-Key": secret}
        own = await world.get(f"/api/v2/provisionerkeys/{secret}", token="", headers=headers)
        assert (own.json()["name"], own.json()["tags"]) == ("k1", {"region": "moon"})
        assert (await world.get("/api/v2/provisionerkeys/zzz", token="")).status_code == 401
        assert (await refusal(world, token="", headers=headers, tags={"x": "y"})).status == 403
        assert (await refusal(world, headers=headers)).status == 403  # with a session token, too
        async with connected_daemon(world, token="", headers=headers, name="keyed") as daemon:
            listed = (await world.get(f"{KEYS}/daemons")).json()
            keyed = next(entry for entry in listed if entry["key"]["name"] == "k1")
            assert [item["tags"]["region"] for item in keyed["daemons"]] == ["moon"]
            assert (await world.delete(f"{KEYS}/k1")).status_code == 204
            with trio.fail_after(60):
                await daemon.session.wait_closed()
        assert (await refusal(world, token="", headers=headers)).status == 403
        assert (await world.delete(f"{KEYS}/k1")).status_code == 404


async def test_key_deleted_during_job(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_coderd(first_user=True) as world:
        secret = (await world.post(KEYS, {"name": "k1", "tags": {}})).json()["key"]
        headers = {"Coder-Provisioner-Daemon-Key": secret}
        for obeys in (True, False):
            monkeypatch.setattr(links, "REVOKED_GRACE", 3600.0 if obeys else 0.3)
            version = await new_version(world)
            path = f"/api/v2/templateversions/{version['id']}"
            async with connected_daemon(world, token="", headers=headers) as daemon:
                job = await daemon.acquire()
                assert (await world.delete(f"{KEYS}/k1")).status_code == 204
                if obeys:  # otherwise a response may arrive after the end of the job
                    while not (await daemon.update(job)).canceled:
                        await trio.lowlevel.checkpoint()
                    await daemon.fail(job, "interrupted")
                with trio.fail_after(60):
                    await daemon.session.wait_closed()
            result = (await world.get(path)).json()["job"]
            assert (result["status"], result["error"]) == ("failed", "interrupted" if obeys else REVOKED_ERROR)
            assert REVOKED_LINE in [item["output"] for item in (await world.get(f"{path}/logs")).json()]
            secret = (await world.post(KEYS, {"name": "k1", "tags": {}})).json()["key"]
            headers = {"Coder-Provisioner-Daemon-Key": secret}


async def test_reconnected_daemon_keeps_identity() -> None:
    async with running_coderd(first_user=True) as world:
        ids = []
        for version in ("1.17", "1.18"):
            async with connected_daemon(world, name="Twin", version=version):
                (daemon,) = (await world.get(DAEMONS)).json()
                ids.append((daemon["id"], daemon["api_version"]))
        assert ids[0][0] == ids[1][0]
        assert ids[1][1] == "1.18"


async def test_older_daemon_completes_jobs() -> None:
    """It lacks everything newer: no modules, timings, presets or files in its results."""
    async with running_coderd(first_user=True) as world:
        for version in ("1.0", "1.17"):
            answers = Answers(
                import_=lambda job: {"start_resources": [resource("box", agents=[agent()])]}, build=build_answer
            )
            async with working_daemon(world, answers, name="older", version=version):
                (daemon,) = (await world.get(DAEMONS)).json()
                assert daemon["api_version"] == version
                name = f"of-{version.replace('.', '-')}"
                template = world.extra["template"] = await new_template(world, name)
                path = f"/api/v2/templateversions/{template['active_version_id']}"
                with trio.fail_after(60):
                    assert (await ended(world, path))["job"]["status"] == "succeeded"
                workspace = await new_workspace(world, name)
                resources = workspace["latest_build"]["resources"]
                assert {item["name"]: len(item.get("agents") or []) for item in resources} == {"box": 1, "disk": 0}
                stopped = await build(world, workspace["id"], "stop")
                assert stopped["latest_build"]["status"] == "stopped"
                deleted = await build(world, workspace["id"], "delete")
                assert deleted["latest_build"]["status"] == "deleted"
            kinds = [job.WhichOneof("type") for job in answers.seen]
            assert kinds == ["template_import", *["workspace_build"] * 3]


async def test_daemons_may_share_a_name() -> None:
    async with running_coderd(first_user=True) as world:
        versions = [await new_version(world), await new_version(world)]
        async with connected_daemon(world, name="twin") as item, connected_daemon(world, name="twin") as other:
            first, second = await item.acquire(), await other.acquire()
            assert first.job_id != second.job_id
            await other.complete_import(second)
            await item.update(first, logs=[line("Working", "still here")])
            await item.complete_import(first)
            assert [await status_of(world, version) for version in versions] == ["succeeded", "succeeded"]


async def test_daemon_with_wrong_clock() -> None:
    async with running_coderd(first_user=True) as world, connected_daemon(world) as daemon:
        version = await new_version(world)
        job = await daemon.acquire()
        for at in (-5, 0, 1, 4_102_444_800_000, 1 << 62):  # before the epoch, 1970, 2100, after the end of time
            await daemon.update(job, logs=[line("Working", f"at {at}", at=at)])
        await daemon.complete_import(job)
        logs = (await world.get(f"/api/v2/templateversions/{version['id']}/logs")).json()
        assert [log["output"] for log in logs] == ["at -5", "at 0", "at 1", "at 4102444800000", f"at {1 << 62}"]
        result = (await world.get(f"/api/v2/templateversions/{version['id']}")).json()["job"]
        assert result["started_at"] <= result["completed_at"]  # the server's clock counts


async def test_jobs_match_daemon_tags() -> None:
    """With no built-in provisioner, a tagged one also runs untagged jobs."""
    async with running_coderd(first_user=True) as world:
        moon = await new_version(world, tags={"region": "moon"})
        async with connected_daemon(world, tags={"region": "moon", "gpu": "yes"}) as tagged:
            job = await tagged.acquire()
            assert job.template_import.metadata.template_version_id == moon["id"]
            plain = await new_version(world)
            await tagged.complete_import(job)
            assert (await tagged.acquire()).template_import.metadata.template_version_id == plain["id"]


async def test_cancel_acquire_gives_empty_job() -> None:
    async with running_coderd(first_user=True) as world, connected_daemon(world) as daemon:
        async with daemon.acquiring() as stream:
            await stream.send(provisionerd_pb2.CancelAcquire())
            assert (await stream.receive()).job_id == ""
            with pytest.raises(trio.EndOfChannel):
                await stream.receive()
        # It may request work again on the same connection.
        version = await new_version(world)
        assert (await daemon.acquire()).template_import.metadata.template_version_id == version["id"]


async def test_broken_connection_keeps_job() -> None:
    async with running_coderd(first_user=True) as world:
        version = await new_version(world)
        async with connected_daemon(world, name="steady") as daemon:
            job = await daemon.acquire()
            await daemon.update(job, logs=[line("Planning", "one")])
        assert await status_of(world, version) == "running"
        async with connected_daemon(world, name="steady") as daemon:
            await daemon.update(job, logs=[line("Planning", "two")])
            await daemon.complete_import(job)
        assert await status_of(world, version) == "succeeded"
        logs = (await world.get(f"/api/v2/templateversions/{version['id']}/logs")).json()
        assert [entry["output"] for entry in logs] == ["one", "two"]


async def test_job_accepts_only_its_daemon() -> None:
    async with running_coderd(first_user=True) as world:
        await new_version(world)
        async with connected_daemon(world, name="a") as own, connected_daemon(world, name="b") as other:
            job = await own.acquire()
            for call in (other.update(job), other.fail(job, "x"), other.complete_import(job)):
                with pytest.raises(RpcError, match="get job: no such job"):
                    await call
            with pytest.raises(RpcError, match="the job is a template_version_import"):
                await own.complete_build(job)
            await own.fail(job, "boom")
            for call in (own.update(job), own.fail(job, "x"), own.complete_import(job)):
                with pytest.raises(RpcError, match="job already completed"):
                    await call


async def test_cancel_arrives_with_next_update() -> None:
    async with running_coderd(first_user=True) as world:
        version = await new_version(world)
        path = f"/api/v2/templateversions/{version['id']}"
        async with connected_daemon(world) as daemon:
            job = await daemon.acquire()
            assert not (await daemon.update(job)).canceled
            assert (await world.patch(f"{path}/cancel")).status_code == 200
            assert await status_of(world, version) == "canceling"
            assert (await world.patch(f"{path}/cancel")).status_code == 400
            assert (await daemon.update(job)).canceled
            await daemon.fail(job, "")
        assert await status_of(world, version) == "canceled"


async def test_pending_job_is_canceled_immediately() -> None:
    async with running_coderd(first_user=True) as world:
        version = await new_version(world)
        answer = await world.patch(f"/api/v2/templateversions/{version['id']}/cancel")
        assert answer.json() == {"message": "Job has been marked as canceled..."}
        assert await status_of(world, version) == "canceled"


async def test_variables_are_settled_while_parsing() -> None:
    async with running_coderd(first_user=True) as world:
        values = [{"name": "needed", "value": "given"}]
        version = await new_version(world, user_variable_values=values)
        lacking = await new_version(world)
        variables = [
            provisioner_pb2.TemplateVariable(name="needed", type="string", required=True),
            provisioner_pb2.TemplateVariable(name="secret", type="string", default_value="s3", sensitive=True),
        ]
        async with connected_daemon(world) as daemon:
            job = await daemon.acquire()
            assert [item.value for item in job.template_import.user_variable_values] == ["given"]
            reply = await daemon.update(job, template_variables=variables, readme=b"# Hi\n")
            assert [(v.name, v.value, v.sensitive) for v in reply.variable_values] == [
                ("needed", "given", False),
                ("secret", "s3", True),
            ]
            await daemon.complete_import(job)
            job = await daemon.acquire()
            with pytest.raises(RpcError, match="required template variables need values: needed"):
                await daemon.update(job, template_variables=variables)
            await daemon.fail(job, "update job: required template variables need values: needed")
        result = (await world.get(f"/api/v2/templateversions/{version['id']}")).json()
        assert result["readme"] == "# Hi\n"
        shown = (await world.get(f"/api/v2/templateversions/{version['id']}/variables")).json()
        assert [(item["name"], item["value"]) for item in shown] == [("needed", "given"), ("secret", "*redacted*")]
        failed = (await world.get(f"/api/v2/templateversions/{lacking['id']}")).json()["job"]
        assert failed["error_code"] == "REQUIRED_TEMPLATE_VARIABLES"
        shown = (await world.get(f"/api/v2/templateversions/{lacking['id']}/variables")).json()
        assert [item["name"] for item in shown] == ["needed", "secret"]


async def test_unstorable_result_fails_job() -> None:
    async with running_coderd(first_user=True) as world:
        version = await new_version(world)
        async with connected_daemon(world) as daemon:
            job = await daemon.acquire()
            twice = resource("box", agents=[agent("main"), agent("MAIN")])
            await daemon.complete_import(job, start_resources=[twice])
        result = (await world.get(f"/api/v2/templateversions/{version['id']}")).json()["job"]
        assert result["status"] == "failed"
        assert "duplicate agent name" in result["error"]


async def test_module_files_travel_both_ways() -> None:
    data = b"modules" * 600_000
    digest = hashlib.sha256(data).digest()
    pb = provisioner_pb2
    pieces = [data[at : at + (2 << 20)] for at in range(0, len(data), 2 << 20)]
    async with running_coderd(first_user=True) as world:
        version = await new_version(world)
        async with connected_daemon(world) as daemon:
            with pytest.raises(RpcError, match="no import running"):
                await _upload(daemon, data, pieces, digest)
            job = await daemon.acquire()
            with pytest.raises(RpcError, match="announced hash"):
                await _upload(daemon, data, pieces, b"\x00" * 32)
            await _upload(daemon, data, pieces, digest)
            await daemon.complete_import(job, plan=b"{}", module_files_hash=digest)
            file_id = await _module_file(world, version["id"])
            created = {"name": "t", "template_version_id": version["id"]}
            template = await world.post(f"/api/v2/organizations/{world.organization_id}/templates", created)
            expected = {"name": "w", "template_id": template.json()["id"]}
            assert (await world.post("/api/v2/users/me/workspaces", expected)).status_code == 201
            build = await daemon.acquire()
            assert build.workspace_build.metadata.template_version_modules_file == file_id
            request = provisionerd_pb2.FileRequest(file_id=file_id, upload_type=pb.UPLOAD_TYPE_MODULE_FILES)
            async with daemon.session.open_stream(
                "/provisionerd.ProvisionerDaemon/DownloadFile", provisionerd_pb2.FileRequest, pb.FileUpload
            ) as stream:
                await stream.send(request)
                await stream.close_send()
                header = (await stream.receive()).data_upload
                received = b"".join([message.chunk_piece.data async for message in stream])
            assert (header.data_hash, header.file_size, received) == (digest, len(data), data)
            await daemon.complete_build(build, state=b"{}")
            with pytest.raises(RpcError, match="no build you run"):  # only for as long as it is needed
                async with daemon.session.open_stream(
                    "/provisionerd.ProvisionerDaemon/DownloadFile", provisionerd_pb2.FileRequest, pb.FileUpload
                ) as stream:
                    await stream.send(request)
                    _ = [message async for message in stream]
            with pytest.raises(RpcError, match="no import running"):
                await _upload(daemon, data, pieces, digest)
            assert world.ctx.services.api.module_files._files == {}


async def test_new_upload_ends_previous() -> None:
    """A call that sends all but one byte used to keep a file each."""
    data, pb = b"modules", provisioner_pb2
    digest = hashlib.sha256(data).digest()
    async with running_coderd(first_user=True) as world:
        under_way = world.ctx.services.api.module_files._uploads

        async def has_begun() -> bool:
            return len(under_way) == 1

        version = await new_version(world)
        async with connected_daemon(world) as daemon:
            job = await daemon.acquire()
            async with daemon.session.open_stream(
                "/provisionerd.ProvisionerDaemon/UploadFile", pb.FileUpload, provisionerd_pb2.Empty
            ) as unfinished:
                header = pb.DataUpload(upload_type=pb.UPLOAD_TYPE_MODULE_FILES, file_size=2, chunks=2)
                await unfinished.send(pb.FileUpload(data_upload=header))
                await unfinished.send(pb.FileUpload(chunk_piece=pb.ChunkPiece(data=b"x")))
                await eventually(has_begun)
                await _upload(daemon, data, [data], digest)
                with pytest.raises(RpcError, match="another one began"):
                    await unfinished.receive()
            assert not under_way
            await daemon.complete_import(job, plan=b"{}", module_files_hash=digest)
        await _module_file(world, version["id"])


async def _upload(daemon: FakeDaemon, data: bytes, pieces: list[bytes], digest: bytes) -> None:
    pb = provisioner_pb2
    async with daemon.session.open_stream(
        "/provisionerd.ProvisionerDaemon/UploadFile", pb.FileUpload, provisionerd_pb2.Empty
    ) as stream:
        header = pb.DataUpload(
            upload_type=pb.UPLOAD_TYPE_MODULE_FILES, data_hash=digest, file_size=len(data), chunks=len(pieces)
        )
        await stream.send(pb.FileUpload(data_upload=header))
        for number, piece in enumerate(pieces):
            chunk = pb.ChunkPiece(data=piece, full_data_hash=digest, piece_index=number)
            await stream.send(pb.FileUpload(chunk_piece=chunk))
        await stream.close_send()
        await stream.receive()


async def _module_file(world: World, version_id: str) -> str:
    from uuid import UUID

    from coder.coderd.store.templates.template_versions import get_module_files_id

    return str(await world.ctx.db.read(get_module_files_id, UUID(version_id)))


async def test_built_in_daemons_use_same_link() -> None:
    async with running_coderd(first_user=True) as world:
        async with connect_built_in(world.ctx, "host-0", ["echo"]) as session:
            daemon = FakeDaemon(session)
            version = await new_version(world)
            job = await daemon.acquire()
            await daemon.complete_import(job)
            (found,) = (await world.get(DAEMONS)).json()
        assert (found["name"], found["key_name"], found["provisioners"]) == ("host-0", "built-in", ["echo"])
        assert found["previous_job"]["status"] == "succeeded"
        assert await status_of(world, version) == "succeeded"


async def test_deprecated_acquire() -> None:
    async with running_coderd(first_user=True) as world:
        version = await new_version(world)
        async with connected_daemon(world) as daemon:
            job = await daemon.call("AcquireJob", provisionerd_pb2.Empty(), provisionerd_pb2.AcquiredJob)
            assert job.template_import.metadata.template_version_id == version["id"]


async def test_unassignable_job_fails() -> None:
    async with running_coderd(first_user=True) as world:
        from tests.kit.provisioners.scripted_provisioner import upload

        big = await upload(world, {"big.bin": b"\x00" * (5 << 20)})
        first = await new_version(world, file_id=big)
        second = await new_version(world)
        async with connected_daemon(world) as daemon:
            job = await daemon.acquire()
            assert job.template_import.metadata.template_version_id == second["id"]
        failed = (await world.get(f"/api/v2/templateversions/{first['id']}")).json()["job"]
        assert failed["status"] == "failed"
        assert failed["error"].startswith("request job was invalidated: payload was too big: ")


async def test_jobs_run_once_among_daemons() -> None:
    async with running_coderd(first_user=True) as world, trio.open_nursery() as nursery:
        acquired: list[str] = []
        versions = [await new_version(world) for _ in range(12)]

        async def run_daemon(number: int) -> None:
            async with connected_daemon(world, name=f"d{number}") as daemon:
                while True:
                    job = await daemon.acquire()
                    acquired.append(job.job_id)
                    await daemon.complete_import(job)

        for number in range(4):
            nursery.start_soon(run_daemon, number)
        with trio.fail_after(60):
            for version in versions:
                result = await ended(world, f"/api/v2/templateversions/{version['id']}")
                assert result["job"]["status"] == "succeeded"
        assert sorted(acquired) == sorted(version["job"]["id"] for version in versions)
        nursery.cancel_scope.cancel()


async def test_server_stop_disconnects_daemons() -> None:
    async with running_coderd(first_user=True) as world:
        async with connected_daemon(world) as daemon, trio.open_nursery() as nursery:
            left: list[type[BaseException]] = []

            async def wait_for_work() -> None:
                try:
                    await daemon.acquire()
                except (RpcClosed, trio.EndOfChannel) as error:
                    left.append(type(error))

            nursery.start_soon(wait_for_work)
            await trio.testing.wait_all_tasks_blocked(0.05)
            world.ctx.stopping.set()
            with trio.fail_after(60):
                await daemon.session.wait_closed()
        assert left


async def test_matched_provisioners_of_busy_daemon() -> None:
    async with running_coderd(first_user=True) as world, working_daemon(world, tags={"a": "b"}):
        version = await new_version(world, tags={"a": "c"})
        assert version["matched_provisioners"]["count"] == 0
        version = await new_version(world, tags={"a": "b"})
        assert version["matched_provisioners"]["available"] == 1


async def test_daemon_name_is_no_identity() -> None:
    """A daemon with the name of another user's daemon gets another identity, by key and by user, and none of its
    jobs."""
    async with running_coderd(first_user=True) as world:
        keys = [(await world.post(KEYS, {"name": f"k{number}", "tags": {}})).json()["key"] for number in (1, 2)]
        _, other = await world.member("other", ["template-admin"])
        by_key: list[dict[str, Any]] = [
            {"token": "", "headers": {"Coder-Provisioner-Daemon-Key": key}, "name": "box"} for key in keys
        ]
        by_user: list[dict[str, Any]] = [{"token": token, "name": "desk"} for token in (world.token, other)]
        for first, second in (by_key, by_user):
            await new_version(world)
            async with connected_daemon(world, **first) as own:
                job = await own.acquire()
                names = []
                for _ in range(2):  # the same name is used again
                    async with connected_daemon(world, **second) as foreign:
                        with pytest.raises(RpcError, match="no such job"):
                            await foreign.update(job)
                        names.append({item["name"] for item in (await world.get(DAEMONS)).json()})
                assert names[0] == names[1]
                assert len({name for name in names[0] if name.startswith(first["name"])}) == 2
                await own.fail(job, "done")


async def test_daemon_cannot_announce_foreign_key() -> None:
    """Any member may run a daemon, and a daemon may join the overlay to be polled: with keys of its own."""
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world, "ws")
        (found,) = [item for part in workspace["latest_build"]["resources"] for item in part.get("agents") or ()]
        taken = PrivateKey.generate(os.urandom).public
        owner = node_keys.workspace_owner(UUID(workspace["id"]))
        node = tailnet_pb2.Node(key=taken.binary, preferred_derp=1)
        assert found and not await node_keys.explain_foreign_keys(world.ctx, node_keys.keys_of_node(node), owner)
        _, member = await world.member("alice")
        async with connected_daemon(world, token=member, tags={"scope": "user"}, name="alices") as daemon:
            join = overlay_pb2.JoinRequest(process=bytes(16))
            await daemon.session.call("/coder.overlay.v1.Overlay/Join", join, overlay_pb2.JoinResponse)
            async with daemon.session.open_stream(
                "/coder.tailnet.v2.Tailnet/Coordinate", tailnet_pb2.CoordinateRequest, tailnet_pb2.CoordinateResponse
            ) as stream:
                request = tailnet_pb2.CoordinateRequest()
                request.update_self.node.CopyFrom(node)
                await stream.send(request)
                with trio.fail_after(60):  # the server's poll may arrive first
                    errors = [message.error async for message in stream]
                assert "another peer is known by this key" in errors[-1]


async def test_largest_import_is_stored() -> None:
    """Postgres takes 32,767 values in one statement: four thousand variables have more."""
    async with running_coderd(first_user=True) as world, connected_daemon(world) as daemon:
        version = await new_version(world)
        job = await daemon.acquire()
        names = [f"n{number:04}" for number in range(4096)]
        variables = [provisioner_pb2.TemplateVariable(name=name, type="string", default_value="x") for name in names]
        await daemon.update(job, template_variables=variables)
        await daemon.complete_import(
            job,
            start_resources=[resource(name, "null_resource") for name in (*names, *names)],
            rich_parameters=[provisioner_pb2.RichParameter(name=name, type="string", mutable=True) for name in names],
            presets=[provisioner_pb2.Preset(name=name) for name in names],
        )
        assert await status_of(world, version) == "succeeded"
        path = f"/api/v2/templateversions/{version['id']}"
        for part, expected in (("variables", 4096), ("rich-parameters", 4096), ("presets", 4096)):
            assert len((await world.get(f"{path}/{part}")).json()) == expected, part
