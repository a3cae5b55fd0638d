"""Every operation in scope: a good call by its rightful caller, and five bad ones.

allowed      a documented success whose body has the documented type
signed out   401
foreign      404 for somebody of another organization (403 where the recorded matrix has it)
unknown      404 for an id that does not exist
bad body     400 for text that is no JSON
forbidden    is the recorded matrix, cell by cell (`matrix.py`)
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field

import httpx

from tests.conformance.bodies import QUERIES
from tests.conformance.scope import Operation, in_scope, permission_rows
from tests.conformance.world import SILENT, UNKNOWN, Populated
from tests.kit.schema import problems

_AGENT = "/api/v2/workspaceagents/me/"
_PROXY = "/api/v2/workspaceproxies/me/"
_ALSO_GOOD: dict[str, tuple[int, ...]] = {
    "GET /api/v2/debug/pprof": (307,),
    "GET /api/v2/debug/{user}/debug-link": (400,),
    "GET /api/v2/applications/auth-redirect": (303, 400),
    "POST /api/v2/users/first": (409,),
    "POST /api/v2/users/otp/change-password": (400,),
    "POST /api/v2/users/{user}/convert-login": (400,),
    "PATCH /api/v2/workspaces/{workspace}": (204, 400),
    "PUT /api/v2/workspaces/{workspace}/extend": (409, 400),
    "PATCH /api/v2/workspacebuilds/{workspacebuild}/cancel": (400,),
    "PATCH /api/v2/templateversions/{templateversion}/cancel": (412, 400),
    "PATCH /api/v2/templateversions/{templateversion}/dry-run/{jobID}/cancel": (412, 400),
    "GET /api/v2/workspaceagents/{workspaceagent}/containers": (403,),  # our agent has none
    "GET /api/v2/workspaceagents/{workspaceagent}/pty": (404, 426),
    "GET /api/v2/workspaceagents/me/reinit": (SILENT,),
    "GET /api/experimental/watch-all-workspacebuilds": (403,),
    "PUT /api/v2/notifications/inbox/{id}/read-status": (404, 500),
    "PUT /api/v2/notifications/templates/{notification_template}/method": (404,),
    "POST /api/v2/notifications/test": (204,),
    "DELETE /api/v2/organizations/{organization}": (400,),
    "GET /api/v2/debug/ws": (426,),
    "GET /oauth2/authorize": (400, 401),
    "POST /oauth2/authorize": (400, 401),
    "POST /api/v2/oauth2-provider/apps": (201,),
    "POST /api/v2/oauth2-provider/apps/{app}/secrets": (201,),
    "POST /oauth2/tokens": (400, 401),
    "DELETE /oauth2/tokens": (400, 401, 404),
    "POST /oauth2/revoke": (400, 401),
    "GET /oauth2/clients/{client_id}": (401,),
    "PUT /oauth2/clients/{client_id}": (401,),
    "DELETE /oauth2/clients/{client_id}": (401,),
    "GET /api/v2/users/oidc/callback": (307,),
    "GET /api/v2/users/oauth2/github/callback": (303, 307),
    "GET /api/v2/workspaceproxies/me/coordinate": (400, 426),
    "POST /api/v2/applications/reconnecting-pty-signed-token": (400,),
    "DELETE /api/v2/organizations/{organization}/members/roles/{roleName}": (204,),
    "PUT /api/v2/users/{user}/status/suspend": (400,),
    "GET /api/v2/users/oidc-claims": (404, 400),
    "POST /api/v2/organizations/{organization}/members/{user}": (400,),
    "POST /api/v2/workspaceagents/aws-instance-identity": (401,),
    "POST /api/v2/workspaceagents/azure-instance-identity": (401,),
    "POST /api/v2/workspaceagents/google-instance-identity": (401,),
    "GET /api/v2/workspaceagents/me/external-auth": (404,),
    "GET /api/v2/workspaceagents/me/gitauth": (404,),
    "POST /api/v2/workspaceagents/me/log-source": (201,),
    "POST /api/v2/organizations/{organization}/templates": (201,),
    "GET /api/v2/workspaceagents/{workspaceagent}/coordinate": (400,),
    "GET /api/v2/workspaces/{workspace}/external-agent/{agent}/credentials": (404,),
    "DELETE /api/v2/workspaceagents/{workspaceagent}/containers/devcontainers/{devcontainer}": (400,),
    "POST /api/v2/workspaceagents/{workspaceagent}/containers/devcontainers/{devcontainer}/recreate": (400,),
    "GET /derp": (426,),
    "GET /api/v2/organizations/{organization}/provisionerdaemons/serve": (400, 426),
    # nothing listens where the task's app would
    "POST /api/v2/tasks/{user}/{task}/send": (409, 502),
    "POST /api/experimental/tasks/{user}/{task}/send": (409, 502),
    "POST /api/v2/users/{user}/webpush/test": (204, 400, 404),
}
"""Answers that are right in this deployment: most agents do not run, nothing can be cancelled any more."""


_WITH_AGENT = frozenset(
    {"POST /api/v2/workspaceproxies/me/issue-signed-app-token"}
    | {
        f"GET /api/v2/workspaceagents/{{workspaceagent}}/{what}"
        for what in ("listening-ports", "containers", "containers/watch")
    }
)
"""Asked while the agent runs."""
_NO_PAGES = ("/scim", "/.well-known", "/oauth2", "/external-auth", "/gitauth")
_BY_ANOTHER = frozenset(
    {"DELETE /api/v2/users/{user}", "PUT /api/v2/users/{user}/roles", "PUT /api/v2/users/{user}/status/suspend",
     "PUT /api/v2/users/{user}/status/activate", "PUT /api/v2/organizations/{organization}/members/{user}/roles",
     "DELETE /api/v2/organizations/{organization}/members/{user}",
     "POST /api/v2/organizations/{organization}/members/{user}"}
)  # fmt: skip
"""Nobody may do these to oneself."""
_SELF_SHAPED = frozenset(
    {"GET /api/v2/users/{user}/roles", "GET /api/v2/workspacebuilds/{workspacebuild}/state",
     "GET /api/v2/experiments/available", "DELETE /api/v2/groups/{group}",
     "GET /api/v2/notifications/dispatch-methods", "POST /api/v2/organizations/{organization}/members/roles",
     "PUT /api/v2/organizations/{organization}/members/roles",
     "GET /api/v2/organizations/{organization}/paginated-members", "GET /api/v2/templates/{template}/acl/available",
     "POST /api/v2/templates/{template}/versions/archive",
     "GET /api/v2/templates/{template}/versions/{templateversionname}",
     "POST /api/v2/templateversions/{templateversion}/archive",
     "POST /api/v2/templateversions/{templateversion}/unarchive", "GET /api/v2/users/{user}/quiet-hours",
     "PUT /api/v2/users/{user}/quiet-hours", "GET /api/v2/notifications/inbox", "GET /api/v2/external-auth",
     "GET /api/v2/deployment/config", "POST /api/v2/workspaceproxies",
     "PATCH /api/v2/workspaceproxies/{workspaceproxy}", "GET /api/v2/insights/user-status-counts",
     "POST /api/v2/oauth2-provider/apps/{app}/secrets"}
)  # fmt: skip
"""The recorded server answers another shape than the document says; the recordings win (tests/kit/replay.py)."""
_PUBLIC = frozenset(
    {"POST /api/v2/csp/reports", "GET /api/v2/derp-map", "GET /api/v2/entitlements", "GET /api/v2/users/authmethods",
     "GET /api/v2/users/first", "POST /api/v2/users/first", "POST /api/v2/users/validate-password",
     "GET /api/v2/workspaceagents/{workspaceagent}/pty", "GET /api/v2/users/oidc/callback",
     "GET /api/v2/users/oauth2/github/callback", "GET /api/v2/users/oauth2/github/device",
     "GET /api/v2/organizations/{organization}/provisionerdaemons/serve"}
)  # fmt: skip
"""Answer without a session in the recordings, whatever the document says."""


_OWN_PROOF = frozenset(
    {"POST /api/v2/workspaceagents/aws-instance-identity", "POST /api/v2/workspaceagents/azure-instance-identity",
     "POST /api/v2/workspaceagents/google-instance-identity", "PUT /oauth2/clients/{client_id}"}
)  # fmt: skip
"""What comes in the body, or beside it, is the proof of who asks."""
_EVERYBODYS = (
    "/scim/",
    "/api/v2/external-auth/",
    "/api/v2/workspaceproxies/",
    "/api/v2/provisionerkeys/",
    "/api/v2/oauth2-provider/",
    "/oauth2/clients/",
)
"""Objects of the site, or links of whoever asks: there are no foreign ones."""
_AS_RECORDED = {
    "PUT /api/v2/notifications/inbox/{id}/read-status": {404, 500},
    "POST /api/v2/organizations/{organization}/members/{user}/workspaces": {400, 403, 404},
    "POST /api/v2/users/{user}/workspaces": {400, 403, 404},
    "POST /api/v2/external-auth/{externalauth}/device": {400, 404},
    "GET /api/v2/provisionerkeys/{provisionerkey}": {401},
    # the page says that there is no such provider
    "GET /external-auth/{externalauth}/callback": {200},
    "GET /gitauth/{externalauth}/callback": {200},
    "GET /oauth2/clients/{client_id}": {401},
    "PUT /oauth2/clients/{client_id}": {401},
    "DELETE /oauth2/clients/{client_id}": {401},
}
"""Refusals of unknown and foreign objects that differ from 404 in the release we follow."""


@dataclass
class Outcome:
    """One operation's results."""

    operation: Operation
    implemented: bool = True
    problems: list[str] = field(default_factory=list)

    @property
    def valid(self) -> bool:
        return self.implemented and not self.problems

    def mark(self) -> str:
        return "ok" if self.valid else "wrong" if self.implemented else "MISSING"


async def walk(world: Populated) -> list[Outcome]:
    """All operations; those that remove things come last."""
    refused = {
        (row["method"], row["path"]) for row in permission_rows() if row["member"] == "403" and "{" in row["path"]
    }
    operations = sorted(in_scope(), key=lambda item: (item.method == "DELETE", "/status/" in item.path))
    outcomes = [await _one(world, operation, refused) for operation in operations]
    return sorted(outcomes, key=lambda item: (item.operation.path, item.operation.method))


async def doors(world: Populated) -> list[Outcome]:
    """The cheap form: is there a route, and does it ask who comes? Without a single object."""
    outcomes = []
    for operation in in_scope():
        outcome = Outcome(operation)
        outcomes.append(outcome)
        path = re.sub(r"\{\w+\}", UNKNOWN, operation.path)
        answer = await world.ask(operation.method, path, "")
        if _is_missing(answer):
            outcome.implemented = False
        elif not _is_public(operation) and answer.status_code < 400 and answer.status_code != 303:
            outcome.problems.append(f"signed out: {answer.status_code}")
        if answer.status_code >= 500:
            outcome.problems.append(f"{answer.status_code}: {answer.text[:120]}")
    return outcomes


def _is_public(operation: Operation) -> bool:
    return operation.public or operation.name in _PUBLIC or not operation.path.startswith("/api/")


async def _one(world: Populated, operation: Operation, refused: set[tuple[str, str]]) -> Outcome:
    outcome = Outcome(operation)
    who = "boss" if "{user}" in operation.path or operation.path.endswith("/logout") else "site"
    token = await _credential(world, operation, who)
    await _bad_calls(world, operation, who, outcome, refused)
    if not outcome.implemented:
        return outcome
    path = await world.fill(operation.path, who) + await _query(world, operation, who)
    body = await world.body(operation.name, who)
    await world.prepare(operation.name, who)
    async with world.running_agent(who) if operation.name in _WITH_AGENT else contextlib.nullcontext():
        answer = await world.ask(operation.method, path, token, body)
    outcome.problems += _allowed(operation, answer)
    if operation.method != "GET" and answer.status_code < 400:
        world.drop(who, person=who == "boss")
    return outcome


async def _query(world: Populated, operation: Operation, who: str) -> str:
    query = QUERIES.get(operation.path, "")
    return "?" + await world.fill_text(query, who) if query else ""


async def _credential(world: Populated, operation: Operation, who: str) -> str:
    if "{task}" in operation.path:
        await world.thing(who, "task")  # its agent is the one that speaks
    if operation.path.startswith(_AGENT):
        return await world.agent_token(who)
    if operation.path.startswith("/api/v2/provisionerkeys/"):
        return await world.thing("site", "provisionerkey_secret")
    if operation.path.startswith(_PROXY):
        return await world.thing("site", "proxy_token")
    if operation.name in _BY_ANOTHER:
        return world.world.token
    return await world.token(who)


def _allowed(operation: Operation, answer: httpx.Response) -> list[str]:
    status = answer.status_code
    good = {*operation.statuses, *_ALSO_GOOD.get(operation.name, ())}
    if 101 in good or operation.path.endswith(("-ws", "/watch")):
        good.add(426)  # asked without the handshake
    if not operation.statuses:
        good |= {200, 201, 204, 202}
    if status not in good:
        return [f"allowed: {status} {answer.text[:160]}"]
    if "event-stream" in answer.headers.get("content-type", "") or status not in operation.statuses:
        return []
    unchecked = not operation.response or operation.name in _SELF_SHAPED
    if unchecked or not answer.content or status in {204, 304}:
        return []
    try:
        value = answer.json()
    except ValueError:
        return [f"shape: no JSON: {answer.text[:60]!r}"]
    return [f"shape: {text}" for text in _shape(operation.response, value)[:3]]


def _shape(name: str, value: object) -> list[str]:
    if not name.startswith("[]"):
        return problems(name, value)
    if value is None:
        return []
    if not isinstance(value, list):
        return [f"a list became {type(value).__name__}"]
    return [text for item in value[:5] for text in problems(name[2:], item)]


async def _bad_calls(
    world: Populated, operation: Operation, who: str, outcome: Outcome, refused: set[tuple[str, str]]
) -> None:
    path = await world.fill(operation.path, who)
    query = await _query(world, operation, who)
    special = operation.path.startswith((_AGENT, _PROXY))
    answer = await world.ask(operation.method, path + query, "", await world.body(operation.name, who))
    if _is_missing(answer):
        outcome.implemented = False
        return
    public = _is_public(operation)
    if not public and answer.status_code not in {401, 303}:
        outcome.problems.append(f"signed out: {answer.status_code}")
    token = await _credential(world, operation, who)
    if operation.request and operation.request.split(".")[0] not in {"oauth2"}:
        answer = await world.ask(operation.method, path + query, token, content=b'{"')
        if answer.status_code not in ({400, 401} if operation.name in _OWN_PROOF else {400}):
            outcome.problems.append(f"bad body: {answer.status_code}")
    names = re.findall(r"\{(\w+)\}", operation.path)
    if not names or special or operation.path.startswith("/api/v2/provisionerkeys/"):
        return
    last = "{" + names[-1] + "}"
    if names[-1] not in {"os", "arch"}:
        path = await world.fill(operation.path.replace(last, UNKNOWN), who)
        body = await world.body(operation.name, who)
        answer = await world.ask(operation.method, path + query, token, body)
        if answer.status_code not in _AS_RECORDED.get(operation.name, {404, 400}) or "Route not found" in answer.text:
            outcome.problems.append(f"unknown id: {answer.status_code}")
    if public or names == ["os", "arch"] or operation.path.startswith(_EVERYBODYS):
        return
    path = await world.fill(operation.path, who)
    body = await world.body(operation.name, who)
    answer = await world.ask(operation.method, path + query, await world.token("stranger"), body)
    allowed = {404, 403} if (operation.method, operation.path) in refused or operation.method != "GET" else {404}
    if answer.status_code not in _AS_RECORDED.get(operation.name, allowed):
        outcome.problems.append(f"foreign: {answer.status_code}")


def _is_missing(answer: httpx.Response) -> bool:
    """No such route, or the dashboard's page in its place."""
    page = "<!doctype html>" in answer.text and answer.request.url.path.startswith(_NO_PAGES)
    return page or answer.status_code == 405 or (answer.status_code == 404 and "Route not found" in answer.text)
