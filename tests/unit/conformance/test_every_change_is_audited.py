"""Every change writes an audit entry: each route except GET declares one, or is listed here with a reason.

A server with all objects gets one valid call of each operation, and must have the entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import httpx
import pytest
from werkzeug.exceptions import HTTPException

from coder.coderd.http.server.declarations import Route, route_of
from coder.coderd.store.audit import audit as store
from coder.coderd.store.audit.audit import EntryFilter
from tests.conformance.walk import walk
from tests.conformance.world import Populated, equipped, populated
from tests.kit.api.api_description import application
from tests.kit.api.callable_operations import SETTINGS, described
from tests.kit.server.server_in_process import FIRST_USER

_BUILD = "a build's end is its entry, with who asked for it (build_events.record_build_end)"
_AGENT = "an agent's reports of its own workspace; connections to it are in the connection log"
_PROXY = "a workspace proxy's process: that it lives, and what its visitors do, whose tickets are entries of the server"
_INSIDE = "inside a workspace, like anything typed there"
_SCREEN = "personal display settings"
_RECORDED = "recorded without an entry: the first user; public banners"
_NOTHING = "changes nothing"
_REFUSED = "refused for every caller"
UNAUDITED = {
    **{
        f"{method} /scim/v2{path}": "answers 404 or 405, and changes nothing"
        for method in ("DELETE", "PATCH", "POST", "PUT")
        for path in ("", "/", "/<path:_rest>")
    },
    "POST /api/v2/workspaces/<id:workspace>/builds": _BUILD,
    "PATCH /api/v2/workspacebuilds/<id:build>/cancel": _BUILD,
    "POST /api/v2/tasks/<user>/<task>/pause": _BUILD,
    "POST /api/experimental/tasks/<user>/<task>/pause": _BUILD,
    "POST /api/v2/tasks/<user>/<task>/resume": _BUILD,
    "POST /api/experimental/tasks/<user>/<task>/resume": _BUILD,
    "POST /api/v2/tasks/<user>/<task>/send": _INSIDE,
    "POST /api/experimental/tasks/<user>/<task>/send": _INSIDE,
    "POST /api/v2/workspaceagents/<id:agent>/containers/devcontainers/<id:container>/recreate": _INSIDE,
    "DELETE /api/v2/workspaceagents/<id:agent>/containers/devcontainers/<id:container>": _INSIDE,
    "POST /api/v2/workspaceagents/<id:agent>/upgrade": "the agent's own upgrade, only sooner",
    "POST /api/v2/workspaceagents/<id:agent>/speedtest": _NOTHING,
    "POST /api/v2/workspaceagents/<id:agent>/speedtest/payload": _NOTHING,
    "POST /api/v2/workspaces/<id:workspace>/usage": "activity in a workspace, reported every minute",
    "PATCH /api/v2/workspaceagents/me/logs": _AGENT,
    "POST /api/v2/workspaceagents/me/log-source": _AGENT,
    "PATCH /api/v2/workspaceagents/me/app-status": _AGENT,
    "POST /api/v2/workspaceagents/me/vitals": _AGENT,
    "POST /api/v2/workspaceagents/me/tasks/<id:task>/log-snapshot": _AGENT,
    "POST /api/v2/workspaceagents/aws-instance-identity": _AGENT,
    "POST /api/v2/workspaceagents/azure-instance-identity": _AGENT,
    "POST /api/v2/workspaceagents/google-instance-identity": _AGENT,
    "POST /api/v2/workspaceproxies/me/register": _PROXY,
    "POST /api/v2/workspaceproxies/me/deregister": _PROXY,
    "POST /api/v2/workspaceproxies/me/issue-signed-app-token": _PROXY,
    "POST /api/v2/workspaceproxies/me/app-stats": _PROXY,
    "POST /api/v2/workspaceproxies/me/may-stay": _PROXY,
    "POST /api/v2/applications/reconnecting-pty-signed-token": "a ticket of a minute; the terminal it opens is logged",
    "POST /api/v2/audit/testgenerate": "writes the entry it is asked for",
    "PUT /api/v2/notifications/inbox/mark-all-as-read": _SCREEN,
    "PUT /api/v2/notifications/inbox/<id:notification>/read-status": _SCREEN,
    "PUT /api/v2/users/<user>/notifications/preferences": _SCREEN,
    "PUT /api/v2/users/<user>/appearance": _SCREEN,
    "PUT /api/v2/users/<user>/preferences": _SCREEN,
    "POST /api/v2/notifications/test": "a message to the caller",
    "POST /api/v2/notifications/custom": "a message to the caller",
    "POST /api/v2/users/<user>/webpush/test": "a message to the caller",
    "POST /oauth2/authorize": "a code of ten minutes: the key it becomes is the entry",
    "POST /derp/streams/<secret>": "bytes of a connection",
    "DELETE /derp/streams/<secret>": "the end of a connection",
    "POST /api/v2/users/first": _RECORDED,
    "PUT /api/v2/appearance": _RECORDED,
    "POST /api/v2/users/validate-password": _NOTHING,
    "POST /api/v2/authcheck": _NOTHING,
    "POST /api/v2/debug/profile": _NOTHING,
    "POST /api/v2/csp/reports": _NOTHING,
    "POST /api/v2/licenses/refresh-entitlements": _NOTHING,
    "POST /api/v2/templateversions/<id:version>/dynamic-parameters/evaluate": _NOTHING,
    "POST /api/v2/files": "unused before a version is created from it, which is an entry",
    "POST /api/v2/templateversions/<id:version>/dry-run": "a plan that creates nothing",
    **{
        f"{method} /api/v2/{noun}/update-preview{rest}": "a plan that creates nothing"
        for noun in ("workspaces/<id:workspace>", "templates/<id:template>")
        for method, rest in (("POST", ""), ("DELETE", "/<id:preview>"))
    },
    "PATCH /api/v2/templateversions/<id:version>/dry-run/<id:job>/cancel": "a plan that creates nothing",
    "POST /api/v2/users/<user>/wireguard-clients": "its service writes the entry in its transaction",
    "DELETE /api/v2/users/<user>/wireguard-clients/<client>": "its service writes the entry in its transaction",
    "POST /api/v2/licenses": _REFUSED,
    "DELETE /api/v2/licenses/<int:license_id>": _REFUSED,
    "DELETE /api/v2/licenses/trial": _REFUSED,
    "POST /api/v2/templatebuilder/compose": "composes a template and stores nothing",
    "POST /api/v2/templatebuilder/sessions": "events of a page, which are not stored",
    **{
        f"{method} /api/v2/{gone}/<path:_rest>": _REFUSED
        for method in ("POST", "PUT", "PATCH", "DELETE")
        for gone in ("ai-gateway", "agent-firewall")
    },
}


def changes() -> Iterator[tuple[str, Route]]:
    app = application()
    for rule in app.url_map.iter_rules():
        declared = route_of(app.view_functions[rule.endpoint])
        if declared is not None and not declared.websocket:
            for method in set(declared.methods) - {"GET"}:
                yield f"{method} {rule.rule}", declared


def test_every_change_declares_audit() -> None:
    silent = {name for name, declared in changes() if declared.audit is None}
    assert silent == set(UNAUDITED)


@dataclass
class Heard:
    """Request ids of successful responses by operation."""

    answers: dict[str, list[UUID]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._urls = application().url_map.bind("localhost")
        self._audited = {name for name, declared in changes() if declared.audit is not None}

    async def note(self, response: httpx.Response) -> None:
        if response.request.method == "GET" or response.status_code >= 400 or response.status_code == 304:
            return
        try:
            rule, _ = self._urls.match(response.request.url.path, response.request.method, return_rule=True)
        except HTTPException:
            return
        name = f"{response.request.method} {rule.rule}"
        if name in self._audited:
            self.answers.setdefault(name, []).append(UUID(response.headers["x-coder-request-id"]))


async def _silent(world: Populated, heard: Heard) -> list[str]:
    """Return the operations with a success and without an entry."""
    rows = await world.world.ctx.db.read(_list)
    written = {row.entry.request_id for row in rows}
    return [name for name, ids in heard.answers.items() if not written & set(ids)]


async def _forget_password(world: Populated) -> None:
    """For an existing user: for an unknown one, the same response comes without an entry."""
    await world.world.post("/api/v2/users/otp/request", {"email": FIRST_USER["email"]}, token="")
    await world.world.ctx.services.deferred_work.wait_until_done()


async def _list(tx: Any) -> Sequence[Any]:
    return await store.list_entries(tx, EntryFilter(), limit=0, offset=0)


async def test_successful_calls_are_audited() -> None:
    """One call of each operation for which the reference has a body."""
    heard = Heard()
    async with populated(**SETTINGS) as world:
        world.world.client.event_hooks["response"] = [heard.note]
        async for item in described(world, lambda name: not name.startswith("GET ")):
            path = item.path
            for name, value in item.values.items():
                path = path.replace("{" + name + "}", value)
            await world.world.request(item.method, path, token="", headers=item.headers, json=item.body)
            world.world.client.cookies.clear()
        await _forget_password(world)
        silent = await _silent(world, heard)
    assert len(heard.answers) > 50, sorted(heard.answers)
    assert not silent, "\n".join(silent)


ELSEWHERE = {
    "DELETE /scim/v2/Users/<ident>": "services/people/test_scim.py",
    "POST /api/v2/workspaces/<id:workspace>/abandon": "services/workspaces/builds/test_build_metrics.py",
    "POST /api/v2/workspaces/<id:workspace>/external-agent/<agent>/rotate-token": (
        "services/workspaces/test_external_agents.py"
    ),
    "PUT /api/v2/oauth2-provider/apps/<id:app>/legacy": "services/login/test_oauth2_provider.py",
    "PUT /api/v2/templates/<id:template>/build-tokens": "services/access/test_build_tokens.py",
    "POST /api/v2/templates/<id:template>/rollouts": "services/templates/test_rollouts.py",
    "PATCH /api/v2/templates/<id:template>/rollouts": "services/templates/test_rollouts.py",
    "PUT /api/v2/organizations/<organization>/provisionerjobs/<id:job>/parked": (
        "services/provisioning/test_job_reasons.py"
    ),
}
"""Our own operations, which the harness does not know, and their tests in tests/unit/coderd."""


@pytest.mark.soak
async def test_successful_call_writes_entry() -> None:
    heard = Heard()
    async with equipped(experiments=("oauth2",)) as world:
        world.world.client.event_hooks["response"] = [heard.note]
        await walk(world)
        await _forget_password(world)
        silent = await _silent(world, heard)
    never = {name for name, declared in changes() if declared.audit is not None} - set(heard.answers)
    assert not silent, "\n".join(silent)
    assert never == set(ELSEWHERE), "\n".join(sorted(never ^ set(ELSEWHERE)))
