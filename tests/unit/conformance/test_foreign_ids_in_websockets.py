"""Every id of every WebSocket route, generated from the routes: in paths, queries, headers and messages.

Foreign, unknown and deleted ids get the same answer: the refusal, or the messages until the stream ends. Messages of
RPC protocols are in `test_foreign_ids_in_rpc.py`, other routes in `test_foreign_ids_in_requests.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import trio

from coder.appproxy.upgrades.raw_links import EndpointTable
from coder.base.secret import Secret
from coder.coderd.app import ENDPOINTS
from coder.coderd.services.network import resume_tokens
from coder.coderd.services.network.resume_tokens import ResumeBinding
from coder.net.dial import DialPolicy
from coder.net.errors import HttpError, NetError
from coder.net.websocket import connect_websocket
from coder.tailnet.resume_tokens import RESUME_HEADER
from tests.kit.api.api_description import application
from tests.kit.server.two_organizations import ForeignWorld, foreign_world
from tests.kit.server.workspace_proxy import new_proxy

PARAMETERS = {
    "version": ("version", "free_version"),
    "job": ("job", "build_job"),
    "workspace": ("workspace",),
    "build": ("build",),
    "agent": ("agent",),
    "organization": ("organization",),
    "user_id": ("user",),
}
"""Kinds of path and query parameters."""
NO_OBJECT = {
    "after",
    "format",
    "version",
    "tag",
    "name",
    "provisioner",
    "role",
    "coder_signed_app_token_23db1dde",
    "targets",
    "templates",
    "read_status",
}
"""Numbers and words in queries; signed tickets; filters of the inbox, which are never looked up."""
QUERIES = {
    "/api/v2/organizations/{organization}/provisionerdaemons/serve": "version=1.18&provisioner=echo&name=d",
    "/api/v2/workspaceagents/{agent}/coordinate": "version=2.0",
    "/api/v2/workspaceagents/{agent}/pty": f"reconnect={uuid4()}&width=80&height=24",
}
SHARED_AT_HOME = {"organization", "user", "version", "free_version"}
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass(frozen=True)
class Stream:
    """One route with an upgrade."""

    rule: str
    query: tuple[str, ...]

    @property
    def parameters(self) -> list[str]:
        return re.findall(r"\{([^}]*)\}", self.rule)


def streams() -> Iterator[Stream]:
    app = application()
    for rule in app.url_map.iter_rules():
        declared = getattr(app.view_functions[rule.endpoint], "route", None)
        if declared is not None and declared.websocket:
            yield Stream(re.sub(r"<(?:[^:<>]*:)?([^<>]*)>", r"{\1}", rule.rule), tuple(declared.query))
    table = EndpointTable()
    for module in ENDPOINTS:
        module.register(table)
    for endpoint in table.endpoints:
        yield Stream(endpoint.pattern, ())


def test_every_stream_id_is_covered() -> None:
    names = {name for item in streams() for name in (*item.parameters, *item.query)}
    assert not names - PARAMETERS.keys() - NO_OBJECT, "add these ids to a list above"
    assert sum(bool(item.parameters) for item in streams()) > 12


@dataclass
class _Asker:
    found: ForeignWorld
    token: str
    own: dict[str, str]

    async def messages(self, stream: Stream, name: str, value: str) -> str:
        """Return all messages, with `value` for one parameter and the caller's objects for the others."""
        values = {item: self.own.get(PARAMETERS[item][0], value) for item in stream.parameters} | {name: value}
        path = re.sub(r"\{([^}]*)\}", lambda match: values[match[1]], stream.rule)
        query = QUERIES.get(stream.rule, "")
        if name in stream.query:
            query = urlencode({name: value})
        return await self.receive(f"{path}?{query}")

    async def receive(self, path: str, *messages: str, headers: Any = ()) -> str:
        policy = DialPolicy(self.found.world.url, token=Secret(self.token) if self.token else None)
        try:
            socket = await connect_websocket(policy, path, headers=headers, carry=False)
        except HttpError as error:
            return _UUID.sub("<uuid>", f"{error.status} {error.message} {error.detail} {error.validations}")
        except NetError as error:
            return f"{error.code}"
        async with socket:
            heard = ["accepted"]
            for message in messages:
                await socket.send_message(message)
            with trio.move_on_after(20):  # the first message; such a stream does not end on its own
                heard.append(str(await socket.receive_message()))
                if messages:
                    heard.append(str(await socket.receive_message()))
            return _UUID.sub("<uuid>", " | ".join(heard))


async def test_foreign_stream_ids() -> None:
    async with foreign_world() as scene:
        wrong = []
        foreign = {**scene.foreign, **{f"gone_{kind}": value for kind, value in scene.foreign_gone.items()}}
        at_home = {kind: value for kind, value in foreign.items() if kind not in SHARED_AT_HOME}
        for who, asker, objects in (
            ("anonymous", _Asker(scene, "", scene.mine), foreign),
            ("administrator elsewhere", _Asker(scene, scene.token, scene.mine), foreign),
            ("member elsewhere", _Asker(scene, scene.stranger_token, scene.strangers), foreign),
            ("member at home", _Asker(scene, scene.neighbour_token, scene.neighbours), at_home),
        ):
            for stream in streams():
                for name in (*stream.parameters, *(item for item in stream.query if item in PARAMETERS)):
                    unknown = await asker.messages(stream, name, str(uuid4()))
                    kinds = [kind for kind in objects if kind.removeprefix("gone_") in PARAMETERS[name]]
                    for kind in kinds:
                        response = await asker.messages(stream, name, objects[kind])
                        if response != unknown:
                            wrong.append(f"{who}: {stream.rule} {name} with {kind}: {response}\n  unknown: {unknown}")
    assert not wrong, "\n".join(wrong)


async def test_foreign_ids_in_messages() -> None:
    async with foreign_world() as scene:
        world = scene.world
        form = f"/api/v2/templateversions/{scene.mine['version']}/dynamic-parameters"
        elsewhere = _Asker(scene, scene.stranger_token, scene.strangers)

        async def form_of(owner: str) -> str:
            return await elsewhere.receive(form, json.dumps({"id": 1, "inputs": {}, "owner_id": owner}))

        unknown = await form_of(str(uuid4()))
        assert unknown.startswith("accepted")
        for kind in ("user", "workspace"):
            assert await form_of(scene.foreign[kind]) == unknown, kind

        # A token that begins with an id: whether the proxy exists is not revealed. (For keys it is, as recorded.)
        proxy = (await new_proxy(world)).partition(":")[0]
        anonymous = _Asker(scene, "", {})
        coordinate = "/api/v2/workspaceproxies/me/coordinate?version=2.0"
        responses = {
            await anonymous.receive(coordinate, headers=[("Coder-External-Proxy-Token", f"{item}:wrong")])
            for item in (proxy, str(uuid4()))
        }
        assert len(responses) == 1 and "401" in responses.pop()
        # A foreign peer's slot: the token belongs to another user or session, or is forged.
        me = (await world.get("/api/v2/users/me", token=scene.token)).json()["id"]
        foreign = ResumeBinding(scene.foreign["user"], "session")  # type: ignore[arg-type]
        another = ResumeBinding(me, "session")
        responses = set()
        for binding in (foreign, another):
            issued = await resume_tokens.issue(world.ctx, uuid4(), binding)
            asker = _Asker(scene, scene.token, {})
            responses.add(await asker.receive("/api/v2/tailnet?version=2.0", headers=[(RESUME_HEADER, issued.token)]))
            responses.add(await asker.receive(f"/api/v2/tailnet?version=2.0&resume_token={issued.token}"))
        assert len(responses) == 1 and "401 Invalid resume token" in responses.pop()
