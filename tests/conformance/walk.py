"""Every operation in scope: a valid call by an authorized caller, and five invalid ones.

allowed      a documented success whose body has the documented type
signed out   401
foreign      404 for a user of another organization (403 where the recorded matrix has it)
unknown      404 for an id that does not exist
bad body     400 for text that is no JSON
forbidden    is the recorded matrix, cell by cell (`matrix.py`)
"""

from __future__ import annotations

import contextlib
import re

import httpx

from tests.conformance.bodies import QUERIES
from tests.conformance.machine_stories import machine_stories
from tests.conformance.scope import Operation, in_scope, permission_rows
from tests.conformance.stories import first_stories, stories
from tests.conformance.success import Outcome, judge
from tests.conformance.world import UNKNOWN, Populated
from tests.kit.api.security_probes import handshake

_AGENT = "/api/v2/workspaceagents/me/"
_PROXY = "/api/v2/workspaceproxies/me/"
_WITH_AGENT = frozenset(
    {"POST /api/v2/workspaceproxies/me/issue-signed-app-token"}
    | {
        f"GET /api/v2/workspaceagents/{{workspaceagent}}/{what}"
        for what in ("listening-ports", "containers", "containers/watch")
    }
)
"""Operations called while the agent is connected."""
_NO_PAGES = ("/scim", "/.well-known", "/oauth2", "/external-auth", "/gitauth")
_BY_ANOTHER = frozenset(
    {
        "DELETE /api/v2/users/{user}",
        "PUT /api/v2/users/{user}/roles",
        "PUT /api/v2/users/{user}/status/suspend",
        "PUT /api/v2/users/{user}/status/activate",
        "PUT /api/v2/organizations/{organization}/members/{user}/roles",
        "DELETE /api/v2/organizations/{organization}/members/{user}",
        "POST /api/v2/organizations/{organization}/members/{user}",
    }
)
"""Operations that a user may not do on the own account."""
_PUBLIC = frozenset(
    {
        "POST /api/v2/csp/reports",
        "GET /api/v2/derp-map",
        "GET /api/v2/entitlements",
        "GET /api/v2/users/authmethods",
        "GET /api/v2/users/first",
        "POST /api/v2/users/first",
        "POST /api/v2/users/validate-password",
        "GET /api/v2/workspaceagents/{workspaceagent}/pty",
        "GET /api/v2/users/oidc/callback",
        "GET /api/v2/users/oauth2/github/callback",
        "GET /api/v2/users/oauth2/github/device",
        "GET /api/v2/organizations/{organization}/provisionerdaemons/serve",
    }
)
"""Routes without a session in the recordings, whatever the document says."""


_OWN_PROOF = frozenset(
    {
        "POST /api/v2/workspaceagents/aws-instance-identity",
        "POST /api/v2/workspaceagents/azure-instance-identity",
        "POST /api/v2/workspaceagents/google-instance-identity",
        "PUT /oauth2/clients/{client_id}",
    }
)
"""Routes authenticated by the body or another header."""
_TAKES_ANYTHING = "POST /api/v2/workspaces/{workspace}/usage"
"""Routes that ignore an unreadable body and count plain use of the workspace: recorded."""
_EVERYBODYS = (
    "/scim/",
    "/api/v2/external-auth/",
    "/api/v2/workspaceproxies/",
    "/api/v2/provisionerkeys/",
    "/api/v2/oauth2-provider/",
    "/oauth2/clients/",
)
"""Objects of the site, or links of the caller: there are no foreign ones."""
_AS_RECORDED = {
    "PUT /api/v2/notifications/inbox/{id}/read-status": {404, 500},
    "POST /api/v2/organizations/{organization}/members/{user}/workspaces": {400, 403, 404},
    "POST /api/v2/users/{user}/workspaces": {400, 403, 404},
    "POST /api/v2/external-auth/{externalauth}/device": {400, 404},
    "GET /api/v2/provisionerkeys/{provisionerkey}": {401},
    # the page shows that there is no such provider
    "GET /external-auth/{externalauth}/callback": {200},
    "GET /gitauth/{externalauth}/callback": {200},
    "GET /oauth2/clients/{client_id}": {401},
    "PUT /oauth2/clients/{client_id}": {401},
    "DELETE /oauth2/clients/{client_id}": {401},
}
"""Refusals of unknown and foreign objects other than 404, as in the reference release."""


async def walk(world: Populated) -> list[Outcome]:
    """Call all operations, deletions last."""
    refused = {
        (row["method"], row["path"]) for row in permission_rows() if row["member"] == "403" and "{" in row["path"]
    }
    operations = sorted(in_scope(), key=lambda item: (item.method == "DELETE", "/status/" in item.path))
    calls = [result async for result in first_stories(world)]
    outcomes = [await _check_operation(world, operation, refused) for operation in operations]
    by_name = {item.operation.name: item for item in outcomes}
    calls += [result async for result in stories(world)]
    calls += [result async for result in machine_stories()]
    for name, response in calls:
        judge(by_name[name], response)
    return sorted(outcomes, key=lambda item: (item.operation.path, item.operation.method))


async def doors(world: Populated) -> list[Outcome]:
    """Check cheaply, without objects, that each route exists and requires authentication."""
    outcomes = []
    for operation in in_scope():
        outcome = Outcome(operation)
        outcomes.append(outcome)
        path = re.sub(r"\{\w+\}", UNKNOWN, operation.path)
        response = await world.ask(operation.method, path, "")
        if _is_missing(response):
            outcome.implemented = False
        elif not is_public(operation) and response.status_code < 400 and response.status_code != 303:
            outcome.problems.append(f"signed out: {response.status_code}")
        if response.status_code >= 500:
            outcome.problems.append(f"{response.status_code}: {response.text[:120]}")
    return outcomes


def is_public(operation: Operation) -> bool:
    return operation.public or operation.name in _PUBLIC or not operation.path.startswith("/api/")


async def _check_operation(world: Populated, operation: Operation, refused: set[tuple[str, str]]) -> Outcome:
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
        response = await world.ask(operation.method, path, token, body)
        if response.status_code in {400, 426} and operation.upgrades:
            response = await handshake(world.world.url, path, token, _credential_header(operation))
    judge(outcome, response)
    if operation.method != "GET" and response.status_code < 400:
        world.drop(who, person=who == "boss")
    return outcome


async def _query(world: Populated, operation: Operation, who: str) -> str:
    query = QUERIES.get(operation.path, "")
    return "?" + await world.fill_text(query, who) if query else ""


async def _credential(world: Populated, operation: Operation, who: str) -> str:
    if "{task}" in operation.path:
        await world.thing(who, "task")  # its agent makes the calls
    if operation.path.startswith(_AGENT):
        return await world.agent_token(who)
    if operation.path.startswith("/api/v2/provisionerkeys/"):
        return await world.thing("site", "provisionerkey_secret")
    if operation.path.startswith(_PROXY):
        return await world.thing("site", "proxy_token")
    if operation.name in _BY_ANOTHER:
        return world.world.token
    return await world.token(who)


async def _bad_calls(
    world: Populated, operation: Operation, who: str, outcome: Outcome, refused: set[tuple[str, str]]
) -> None:
    path = await world.fill(operation.path, who)
    query = await _query(world, operation, who)
    special = operation.path.startswith((_AGENT, _PROXY))
    response = await world.ask(operation.method, path + query, "", await world.body(operation.name, who))
    if _is_missing(response):
        outcome.implemented = False
        return
    public = is_public(operation)
    if not public and response.status_code not in {401, 303}:
        outcome.problems.append(f"signed out: {response.status_code}")
    token = await _credential(world, operation, who)
    if operation.request and operation.request.split(".")[0] not in {"oauth2"}:
        response = await world.ask(operation.method, path + query, token, content=b'{"')
        unread = {204} if operation.name == _TAKES_ANYTHING else set()
        if response.status_code not in ({400, 401} if operation.name in _OWN_PROOF else {400} | unread):
            outcome.problems.append(f"bad body: {response.status_code}")
    names = re.findall(r"\{(\w+)\}", operation.path)
    if not names or special or operation.path.startswith("/api/v2/provisionerkeys/"):
        return
    last = "{" + names[-1] + "}"
    if names[-1] not in {"os", "arch"}:
        path = await world.fill(operation.path.replace(last, UNKNOWN), who)
        body = await world.body(operation.name, who)
        response = await world.ask(operation.method, path + query, token, body)
        if (
            response.status_code not in _AS_RECORDED.get(operation.name, {404, 400})
            or "Route not found" in response.text
        ):
            outcome.problems.append(f"unknown id: {response.status_code}")
    if public or names == ["os", "arch"] or operation.path.startswith(_EVERYBODYS):
        return
    path = await world.fill(operation.path, who)
    body = await world.body(operation.name, who)
    response = await world.ask(operation.method, path + query, await world.token("stranger"), body)
    allowed = {404, 403} if (operation.method, operation.path) in refused or operation.method != "GET" else {404}
    if response.status_code not in _AS_RECORDED.get(operation.name, allowed):
        outcome.problems.append(f"foreign: {response.status_code}")


def _credential_header(operation: Operation) -> str:
    return "Coder-External-Proxy-Token" if operation.path.startswith(_PROXY) else "Coder-Session-Token"


def _is_missing(response: httpx.Response) -> bool:
    """Whether there is no such route, or the dashboard's page is returned."""
    page = "<!doctype html>" in response.text and response.request.url.path.startswith(_NO_PAGES)
    return page or response.status_code == 405 or (response.status_code == 404 and "Route not found" in response.text)
