"""Attacks with leftovers of a permission: links, tokens, jobs and forms that were valid a moment ago, or belong to
another user.

Each row is one message or one connection attempt. Streams about objects that are no longer shared are in
`test_attacks_on_open_streams.py`; messages no genuine agent or daemon sends are in `test_attacks_by_rpc.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4

import pytest
import trio

from coder.api.base.refusals import Unauthenticated
from coder.appproxy.apps.app_tickets import Ticket, opens_terminal_untrusted, terminal_request
from coder.base.json_types import JsonObject
from coder.base.secret import Secret
from coder.coderd.rpc_endpoints import provisioners
from coder.coderd.services.agents import agent_connections
from coder.coderd.services.agents.agent_api.agent_service import GIVE_SECRETS
from coder.coderd.services.apps import app_tokens
from coder.coderd.services.network import resume_tokens
from coder.coderd.services.network.resume_tokens import ResumeBinding
from coder.coderd.store.agents.system_agents import get_agent
from coder.coderd.store.provisioning import system_jobs
from coder.domain.foundation.signed_tokens import sign
from coder.net.errors import HttpError
from coder.rpc.errors import RpcClosed, RpcError
from coder.rpc.proto import tailnet_pb2
from coder.rpc.session import Session, open_session
from tests.kit.agents.scripted_agent import dial_link
from tests.kit.api import id_fields
from tests.kit.provisioners.scripted_provisioner import (
    Answers,
    FakeDaemon,
    connected_daemon,
    new_version,
    resource,
    upload,
)
from tests.kit.server.race_conditions import filled
from tests.kit.server.server_in_process import World, running_coderd
from tests.kit.server.workspaces import full_agent, new_workspace, settled, workspace_world
from tests.unit.coderd.app.test_replicas import replica_of

# ---- the link of an agent whose authorization has ended

LOSSES = ("stopped", "restarted", "abandoned", "deleted", "its owner suspended")
"""Making a workspace dormant also stops it: its agent runs until then, but users cannot enter."""
ROLES = ("agent", "other")
AS_AGENT = sorted(
    name
    for name, method in id_fields.methods().items()
    if name.startswith(("Agent.", "Tailnet.")) and not method.server_streaming
)


def _built(job: Any) -> dict[str, Any]:
    """Return a workspace whose agent has a token of its own in each build."""
    if job.workspace_build.metadata.workspace_transition:
        return {"state": b"{}", "resources": []}
    return {"state": b"{}", "resources": [resource("box", agents=[full_agent(str(uuid4()))])]}


async def _lose(world: World, loss: str, workspace: str, owner: str) -> None:
    path = f"/api/v2/workspaces/{workspace}"
    asked: dict[str, tuple[str, str, Any]] = {
        "stopped": ("POST", f"{path}/builds", {"transition": "stop"}),
        "restarted": ("POST", f"{path}/builds", {"transition": "start"}),
        "abandoned": ("POST", f"{path}/abandon", None),
        "deleted": ("POST", f"{path}/builds", {"transition": "delete"}),
        "its owner suspended": ("PUT", f"/api/v2/users/{owner}/status/suspend", None),
    }
    method, where, body = asked[loss]
    answer = await world.request(method, where, json=body)
    assert answer.status_code < 300, answer.text
    await settled(world, workspace)


async def _result_of(session: Session, name: str) -> str:
    """Return the result of one message: an answer, a refusal, or the end."""
    method = id_fields.methods()[name]
    full = f"/{method.containing_service.full_name}/{method.name}"
    try:
        with trio.fail_after(60):
            await session.call(full, id_fields.request_of(name), id_fields.reply_type(name))
    except RpcClosed:
        return "ended"
    except RpcError as error:
        return error.text
    return "answered"


async def test_agent_links_end_with_authorization(monkeypatch: pytest.MonkeyPatch) -> None:
    """No secret is given from that moment on; soon no call is answered at all, and no new link is accepted."""
    monkeypatch.setattr(agent_connections, "CONNECTION_UPDATE_FREQUENCY", timedelta(seconds=0.2))
    wrong: list[str] = []
    async with workspace_world(Answers(build=_built)) as (world, _):
        for number, loss in enumerate(LOSSES):
            owner, token = await world.member(f"owner{number}")
            workspace = await new_workspace(world, "box", token=token)
            (headers,) = [item for part in workspace["latest_build"]["resources"] for item in part.get("agents") or ()]
            row = await world.ctx.db.read(get_agent, UUID(headers["id"]))
            assert row is not None
            paths = [f"/api/v2/workspaceagents/me/rpc?version=2.10&role={role}" for role in ROLES]
            async with AsyncExitStack() as stack:
                links = [
                    await stack.enter_async_context(
                        open_session(await dial_link(world, path, token=str(row.auth_token)), role="client")
                    )
                    for path in paths
                ]
                for link in links:
                    assert await _result_of(link, "Agent.GetManifest") == "answered"
                await _lose(world, loss, workspace["id"], owner)
                for role, link in zip(ROLES, links, strict=True):
                    for name in sorted(GIVE_SECRETS):
                        if await _result_of(link, f"Agent.{name}") == "answered":
                            wrong.append(f"{loss}: {role} got the secrets of {name}")
                    with trio.fail_after(60):
                        await link.wait_closed()
                    for name in AS_AGENT:
                        if (answer := await _result_of(link, name)) != "ended":
                            wrong.append(f"{loss}: {role} {name}: {answer}")
            for path in paths:
                with pytest.raises(HttpError) as refused:
                    await dial_link(world, path, token=str(row.auth_token))
                assert refused.value.status == 401, loss
    assert len(AS_AGENT) > 15
    assert not wrong, "\n".join(wrong)


# ---- provisioner keys, pre-shared keys and tags

PSK = "sesame of the deployment"
NEITHER: tuple[dict[str, str], ...] = (
    {},
    {"scope": "organization"},
    {"scope": "User"},
    {"scope": "USER"},
    {"scope": "user "},
    {"scope": ""},
    {"scope": "user\t"},
    {"owner": "{admin}"},
    {"owner": "{member}"},
    {"owner": ""},
    {"Scope": "user"},
    {"scope": "organization", "owner": "{admin}"},
    {"a": "b"},
    {"scope": "everything", "a": "b"},
)
"""Tags of no user: only daemons for the organization may have them."""


def _key_headers(key: str = "", psk: str | None = None) -> dict[str, str]:
    headers = {"Coder-Provisioner-Daemon-Key": key} if key else {}
    return headers if psk is None else {**headers, "Coder-Provisioner-Daemon-PSK": psk}


async def _key(world: World, organization: str, name: str, tags: Mapping[str, str] = {}) -> str:
    path = f"/api/v2/organizations/{organization}/provisionerkeys"
    created = await world.post(path, {"name": name, "tags": dict(tags)})
    assert created.status_code == 201, created.text
    return str(created.json()["key"])


async def _connection_attempts(
    world: World, member: str, stranger: str, narrow: str
) -> list[tuple[str, dict[str, Any]]]:
    """Return (label, options of a daemon) for callers that must not be admitted."""
    home, far = await _key(world, "default", "home", {"a": "b"}), await _key(world, "elsewhere", "far")
    deleted = await _key(world, "default", "gone")
    assert (await world.delete("/api/v2/organizations/default/provisionerkeys/gone")).status_code == 204
    far_id = (await world.get("/api/v2/organizations/elsewhere")).json()["id"]
    attempts: list[tuple[str, dict[str, Any]]] = [
        *[
            (
                f"a key of another organization at {organization}",
                {"headers": _key_headers(key), "organization": organization},
            )
            for key, organization in (
                (home, "elsewhere"),
                (home, far_id),
                (far, "default"),
                (far, world.organization_id),
            )
        ],
        *[
            (f"a key with tags {tags}", {"headers": _key_headers(home), "tags": tags})
            for tags in ({"a": "b"}, {"scope": "user"}, {"scope": "organization"}, {"": ""}, {"owner": world.user_id})
        ],
        *[
            (f"a key that is none: {key[:6]}", {"headers": _key_headers(key)})
            for key in (deleted, home[:-1], home + "x", home.upper(), f"{home},{far}", "x", "0" * 43)
        ],
        ("key and pre-shared key", {"headers": _key_headers(home, PSK)}),
        ("key and session", {"headers": _key_headers(home), "token": world.token}),
        ("key, session and tags", {"headers": _key_headers(home), "token": world.token, "tags": {"scope": "user"}}),
        *[
            (f"a pre-shared key {psk!r}", {"headers": _key_headers(psk=psk), "tags": tags})
            for psk in (PSK[:-1], PSK + "x", PSK.upper(), PSK.encode().hex(), "x")
            for tags in ({}, {"scope": "user"})
        ],
        *[
            (
                f"the pre-shared key at {organization}",
                {"headers": _key_headers(psk=PSK), "organization": organization, "tags": tags},
            )
            for organization in ("elsewhere", far_id)
            for tags in ({}, {"scope": "user"}, {"owner": world.user_id})
        ],
        *[(f"a member with {tags}", {"token": member, "tags": tags}) for tags in NEITHER],
        *[
            (f"a member with two scopes {tags}", {"token": member, "tags": tags})
            for tags in (
                ["scope=user", "scope=organization"],
                ["scope=user", "scope="],
                ["scope=user", "scope=User"],
            )
        ],
        *[
            (f"a stranger with {tags}", {"token": stranger, "tags": tags})
            for tags in ({"scope": "user"}, {}, {"scope": "user", "owner": "{admin}"})
        ],
        *[(f"a narrow key with {tags}", {"token": narrow, "tags": tags}) for tags in ({"scope": "user"}, {})],
        *[(f"no credentials with {tags}", {"token": "", "tags": tags}) for tags in ({}, {"scope": "user"})],
        ("an empty pre-shared key", {"token": "", "headers": _key_headers(psk="")}),
        ("another kind of daemon", {"token": member, "tags": {"scope": "user"}, "kinds": ("docker",)}),
    ]
    return [(label, {"token": "", **how}) for label, how in attempts]


async def test_daemons_use_their_own_key() -> None:
    wrong = []
    async with running_coderd(first_user=True, provisioner_daemon_psk=Secret(PSK)) as world:
        elsewhere = (await world.post("/api/v2/organizations", {"name": "elsewhere"})).json()["id"]
        member_id, member = await world.member("member")
        _, stranger = await world.member("stranger", organizations=[elsewhere])
        narrow = (await world.post("/api/v2/users/me/keys/tokens", {"scopes": ["template:read"]}, token=member)).json()
        people = {"admin": world.user_id, "member": member_id}
        attempts = await _connection_attempts(world, member, stranger, narrow["key"])
        assert len(attempts) > 50
        for label, how in attempts:
            if isinstance(tags := how.get("tags"), dict):
                how["tags"] = {name: value.format(**people) for name, value in tags.items()}
            try:
                async with connected_daemon(world, **{"name": "attacker", **how}):
                    wrong.append(f"{label}: let in")
            except HttpError as error:
                if error.status not in {400, 403, 404}:
                    wrong.append(f"{label}: {error.status}")
        # The tags of a user's daemon do not decide its owner; jobs for the owner in the tags stay pending.
        claimed = {"scope": "user", "owner": world.user_id}
        version = await new_version(world, tags={"scope": "user"})
        async with connected_daemon(world, token=member, tags=claimed, name="attacker") as daemon:
            with trio.move_on_after(1) as scope:
                await daemon.acquire()
            if not scope.cancelled_caught:
                wrong.append("a daemon got the job of the user its tags name")
            listed = (await world.get("/api/v2/organizations/default/provisionerdaemons")).json()
            assert [item["tags"] for item in listed] == [{"scope": "user", "owner": member_id}]
        job = (await world.get(f"/api/v2/templateversions/{version['id']}")).json()["job"]
        assert job["status"] == "pending"
    assert not wrong, "\n".join(wrong)


# ---- jobs that are over, or belong to another daemon by now


async def _about(daemon: FakeDaemon, name: str, job_id: str) -> str:
    request: Any = id_fields.request_of(f"ProvisionerDaemon.{name}")
    request.job_id = job_id
    if name == "UpdateJob":
        request.logs.add(output="late", stage="late")
    elif name == "CompleteJob":
        request.template_import.start_resources.add(name="late", type="late")
    elif name == "CommitQuota":
        request.daily_cost = 1
    else:
        request.error = "late"
    try:
        await daemon.call(name, request, id_fields.reply_type(f"ProvisionerDaemon.{name}"))
    except (RpcError, RpcClosed) as error:
        return str(error)
    return ""


async def test_ended_job_is_never_changed() -> None:
    names = ("UpdateJob", "CompleteJob", "FailJob", "CommitQuota")
    wrong = []
    async with running_coderd(first_user=True) as world, connected_daemon(world, name="first") as first:
        for ending in ("completed", "failed", "cancelled"):
            version = await new_version(world)
            job = await first.acquire()
            if ending == "completed":
                await first.complete_import(job, start_resources=[resource("box")])
            elif ending == "failed":
                await first.fail(job, "over")
            else:
                cancelled = await world.patch(f"/api/v2/templateversions/{version['id']}/cancel")
                assert cancelled.status_code == 200, cancelled.text
                await first.fail(job, "cancelled")
            path = f"/api/v2/templateversions/{version['id']}"
            before = [(await world.get(path + more)).text for more in ("", "/logs", "/resources")]
            async with connected_daemon(world, name="second") as second:
                for who, daemon in (("its worker", first), ("another", second)):
                    for name in names:
                        if not await _about(daemon, name, job.job_id):
                            wrong.append(f"{ending}: {name} by {who} was accepted")
            after = [(await world.get(path + more)).text for more in ("", "/logs", "/resources")]
            if after != before:
                wrong.append(f"{ending}: {before} became {after}")
    assert not wrong, "\n".join(wrong)


# ---- jobs of a daemon without authorization

_ELSEWHERE = "/api/v2/organizations/elsewhere"
WORKERS: dict[str, tuple[dict[str, Any], dict[str, str], tuple[str, str, Any], bool]] = {
    # roles of the daemon's user, its tags, (method, path, body) of the revocation, whether its session ends
    "its key is deleted": ({}, {}, ("DELETE", f"{_ELSEWHERE}/provisionerkeys/k", None), False),
    "its user's role for the site is taken": (
        {"site": ["template-admin"]},
        {},
        ("PUT", "/api/v2/users/{user}/roles", {"roles": []}),
        False,
    ),
    "its user's role in the organization is taken": (
        {"organization": ["organization-admin"]},
        {},
        ("PUT", f"{_ELSEWHERE}/members/{{user}}/roles", {"roles": []}),
        False,
    ),
    "its user leaves the organization": (
        {"organization": ["organization-template-admin"]},
        {"scope": "user"},
        ("DELETE", f"{_ELSEWHERE}/members/{{user}}", None),
        False,
    ),
    "its user is suspended": (
        {"organization": ["organization-admin"]},
        {},
        ("PUT", "/api/v2/users/{user}/status/suspend", None),
        True,
    ),
    "its user is deleted": (
        {"organization": ["organization-admin"]},
        {},
        ("DELETE", "/api/v2/users/{user}", None),
        True,
    ),
    "its session ends": (
        {"organization": ["organization-admin"]},
        {},
        ("DELETE", "/api/v2/users/{user}/keys/{key}", None),
        True,
    ),
    "the organization is deleted": ({"site": ["owner"]}, {}, ("DELETE", _ELSEWHERE, None), False),
}


async def _worker(world: World, name: str, roles: dict[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """Return (names, options) of a daemon of another organization."""
    organization = (await world.get(_ELSEWHERE)).json()["id"]
    if not roles:
        key = await _key(world, "elsewhere", "k")
        return {"user": "", "key": ""}, {"token": "", "headers": _key_headers(key), "organization": organization}
    user, token = await world.member(name, roles.get("site"), organizations=[organization])
    if "organization" in roles:
        granted = await world.put(f"{_ELSEWHERE}/members/{user}/roles", {"roles": roles["organization"]})
        assert granted.status_code == 200, granted.text
    return {"user": user, "key": token.partition("-")[0]}, {"token": token, "organization": organization}


async def _waiting_version(world: World, how: dict[str, Any], tags: dict[str, str]) -> UUID:
    """Return the job of an import in another organization, created by the daemon's user if the daemon works for that
    user."""
    by = {"token": how["token"]} if tags else {}
    stored = await upload(world, {"main.tf": ""}, **by)
    body = {"file_id": stored, "provisioner": "echo", "storage_method": "file", "tags": tags}
    created = await world.post(f"/api/v2/organizations/{how['organization']}/templateversions", body, **by)
    assert created.status_code == 201, created.text
    return UUID(created.json()["job"]["id"])


async def _status_of(world: World, job_id: UUID) -> str:
    job = await world.ctx.db.read(system_jobs.get_job, job_id)
    assert job is not None
    return job.status


async def test_revoked_daemon_loses_its_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the grace period for finishing its job. A daemon with a session is disconnected immediately, and its job
    waits for the reaper, as when the daemon's machine is lost."""
    for name in ("PAUSE", "REVOKED_GRACE"):
        monkeypatch.setattr(provisioners, name, 0.1)
    wrong = []
    async with running_coderd(first_user=True) as world:
        for number, (loss, (roles, tags, (method, path, body), is_session)) in enumerate(WORKERS.items()):
            created = await world.post("/api/v2/organizations", {"name": "elsewhere"})
            assert created.status_code == 201, created.text
            names, how = await _worker(world, f"user{number}", roles)
            held = await _waiting_version(world, how, tags)
            async with connected_daemon(world, name=f"d{number}", tags=tags, **how) as daemon:
                job = await daemon.acquire()
                assert job.job_id == str(held)
                assert not (await daemon.update(job)).canceled, "its own so far"
                next_job = await _waiting_version(world, how, tags)
                taken = await world.request(method, path.format(**names), json=filled(body, names))
                assert taken.status_code in {200, 204}, f"{loss}: {taken.text}"
                with trio.fail_after(60):
                    await daemon.session.wait_closed()
                for name in ("UpdateJob", "CompleteJob", "FailJob", "CommitQuota"):
                    if not await _about(daemon, name, job.job_id):
                        wrong.append(f"{loss}: {name} after its link had ended")
            if await _status_of(world, next_job) != "pending":
                wrong.append(f"{loss}: got another job")
            if (status := await _status_of(world, held)) != ("running" if is_session else "failed"):
                wrong.append(f"{loss}: its job is {status}")
            try:
                async with connected_daemon(world, name=f"d{number}", tags=tags, **how):
                    wrong.append(f"{loss}: was admitted again")
            except HttpError as error:
                assert error.status in {401, 403, 404}, f"{loss}: {error.status}"
            deleted = await world.delete(_ELSEWHERE)
            assert deleted.status_code in {200, 404}, deleted.text
    assert not wrong, "\n".join(wrong)


# ---- resume tokens at another replica


async def _resume_token_of(world: World, resume: str, token: str) -> str:
    """Return the response to a resumed link that announced no keys."""
    path = f"/api/v2/tailnet?{urlencode({'version': '2.0', 'resume_token': resume})}"
    kinds = tailnet_pb2.RefreshResumeTokenRequest(), tailnet_pb2.RefreshResumeTokenResponse
    async with open_session(await dial_link(world, path, token=token), role="client") as session:
        return str((await session.call("/coder.tailnet.v2.Tailnet/RefreshResumeToken", *kinds)).token)


async def test_resume_tokens_are_bound_to_sessions() -> None:
    wrong = []
    async with running_coderd(first_user=True) as world, replica_of(world) as other:
        user, token = await world.member("alice")
        second = await world.login("alice@b.c", "SomeSecure123!")
        _, stranger = await world.member("eve")
        peer, binding = uuid4(), ResumeBinding(UUID(user), token.partition("-")[0], "digest")
        whole = (await resume_tokens.issue(world.ctx, peer, binding)).token
        ticket = Ticket(terminal_request(peer), peer, peer, "", UUID(user))
        app, _ = await app_tokens.issue_ticket(world.ctx, ticket)
        claims: JsonObject = {
            "sub": str(peer),
            "user": user,
            "session": binding.session,
            "keys": "",
            "exp": 2**40,
        }
        keys = other.ctx.services.signing_keys
        head, body, signature = whole.split(".")
        for replica in (world, other):
            assert await resume_tokens.read_untrusted(replica.ctx, whole, binding) == (peer, "digest")
            if await opens_terminal_untrusted(replica.ctx.services.signing_keys, world.ctx.clock.now(), whole, peer):
                wrong.append("a resume token opened a terminal")
            again = await resume_tokens.read_untrusted(
                replica.ctx, await _resume_token_of(replica, whole, token), binding
            )
            if again != (peer, "digest"):
                wrong.append(f"bound to no keys any more: {again}")
        forged = [
            app,
            f"{head}.{body}.",
            f"{head}.{body}",
            f"{head}..{signature}",
            "..",
            "a.b.c",
            whole[:-2],
            whole + "A",
            f"eyJhbGciOiJub25lIiwia2lkIjoiMSJ9.{body}.",
            sign(await keys.get("workspace_apps_token"), claims),
            sign(await keys.get("workspace_apps_token"), {**claims, "exp": 0}),
            *[
                sign(await keys.get(resume_tokens.FEATURE), {**claims, **more})
                for more in (
                    {"exp": 0},
                    {"user": str(uuid4())},
                    {"user": None},
                    {"session": ""},
                    {"session": None},
                    {"sub": "x"},
                    {"sub": None},
                    {"sub": [peer.hex] * 2},
                    {"session": [binding.session]},
                )
            ],
        ]
        headers = [(text, token) for text in forged] + [(whole, second), (whole, stranger), (whole, world.token)]
        for replica in (world, other):
            for text, by in headers:
                path = f"/api/v2/tailnet?{urlencode({'version': '2.0', 'resume_token': text})}"
                try:
                    await trio.aclose_forcefully(await dial_link(replica, path, token=by))
                except HttpError as error:
                    if error.status == 401:
                        continue
                    wrong.append(f"{text[:40]}: {error.status}")
                else:
                    wrong.append(f"{text[:40]}: let in")
        assert (await other.post("/api/v2/users/logout", token=token)).status_code == 200
        other.client.cookies.clear()
        for replica in (world, other):
            for by in (token, second):
                path = f"/api/v2/tailnet?{urlencode({'version': '2.0', 'resume_token': whole})}"
                with pytest.raises(HttpError) as refused:
                    await dial_link(replica, path, token=by)
                assert refused.value.status == 401
            with pytest.raises(Unauthenticated):
                await resume_tokens.read_untrusted(replica.ctx, whole, ResumeBinding(UUID(user), second[:10]))
    assert not wrong, "\n".join(wrong)
