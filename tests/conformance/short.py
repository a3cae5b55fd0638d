"""Every operation as every role, in the time a test suite has: one server, one set of objects, requests side by side.

Reading is asked for in every recorded cell. What changes something is asked for by whoever must be refused: a refusal
leaves the objects as they are, so one set serves all of them. Operations without a recorded row are asked the same
way where the policy's own table refuses the role; that the rightful caller succeeds is `walk.py`'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from typing import Any
from uuid import UUID, uuid4

import trio

from coder.domain.access.policy import Resource, Subject, decide
from coder.domain.access.route_scopes import Unscoped, named
from tests.conformance.matrix import FIXED_COLUMNS, Matrix, good, licence_row, out_of_scope, request_of
from tests.conformance.scope import Operation, in_scope, permission_rows
from tests.conformance.walk import is_public
from tests.conformance.world import SITE_ROLES, Populated
from tests.kit.openapi import scopes_by_operation

SIDE_BY_SIDE = 8
_REFUSED = frozenset({"401", "403", "404"})
_OWN_CREDENTIALS = ("/workspaceagents/me/", "/workspaceproxies/me/", "/provisionerkeys/", "/scim/", "/oauth2/")
"""Callers there are no people."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One request and what judges its answer: a recorded row, or (without one) that it must be refused."""

    row: dict[str, str]
    caller: str
    method: str
    url: str
    token: str
    body: Any
    recorded: bool = True

    def __str__(self) -> str:
        return f"{self.method} {self.row['path']} [{self.row['object_owner']}] as {self.caller}"


async def check_every_role(world: Populated) -> Matrix:
    """Asks all cells of the short form."""
    # Callers share one client: nobody's session may come back as somebody else's cookie.
    world.world.client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    cells = [await _cell(world, *found) for found in [*recorded_cells(), *predicted_cells()]]
    matrix = Matrix()
    send, receive = trio.open_memory_channel[Cell](len(cells))
    async with trio.open_nursery() as nursery, send:
        for cell in cells:
            send.send_nowait(cell)
        for _ in range(SIDE_BY_SIDE):
            nursery.start_soon(_ask_all, world, receive.clone(), matrix)
    return matrix


async def _cell(world: Populated, row: dict[str, str], caller: str, recorded: bool) -> Cell:
    asked = await request_of(world, row, caller)
    return Cell(row, caller, row["method"], asked.url, asked.token, asked.body, recorded)


async def _ask_all(world: Populated, cells: trio.MemoryReceiveChannel[Cell], matrix: Matrix) -> None:
    async with cells:
        async for cell in cells:
            answer = await world.ask(cell.method, cell.url, cell.token, cell.body)
            matrix.cells += 1
            text = answer.text if "event-stream" not in answer.headers.get("content-type", "") else ""
            if cell.recorded and not good(cell.row, cell.caller, answer.status_code, text):
                matrix.wrong.append(f"{cell}: {cell.row[cell.caller]} became {answer.status_code}")
            elif not cell.recorded and not 400 <= answer.status_code < 500:
                matrix.wrong.append(f"{cell}: the policy refuses, but {answer.status_code}")


def recorded_cells() -> Iterator[tuple[dict[str, str], str, bool]]:
    """(row, caller, True) of what may be asked without a change."""
    for row in permission_rows():
        if out_of_scope(row) or _of_a_person_itself(row):
            continue
        for caller in callers(row):
            if row["method"] == "GET" or _must_be_refused(row, caller):
                yield row, caller, True


def callers(row: dict[str, str]) -> list[str]:
    return [name for name in row if name not in FIXED_COLUMNS]


def _must_be_refused(row: dict[str, str], caller: str) -> bool:
    if caller == "anonymous":
        return row[caller] == "401"
    nobody = row["owner"] in _REFUSED  # there is no such object, or the licence refused: nothing is said of roles
    return row[caller] in _REFUSED and not nobody and not licence_row(row)


def _of_a_person_itself(row: dict[str, str]) -> bool:
    """Objects of each caller's own would have to be made for each; the long form does."""
    return row["object_owner"] == "self" and row["path"].startswith("/api/v2/workspace")


def predicted_cells() -> Iterator[tuple[dict[str, str], str, bool]]:
    """(row, caller, False) of operations that were not recorded, where the policy refuses."""
    recorded = {(row["method"], row["path"].split(" ")[0]) for row in permission_rows()}
    roles = callers(permission_rows()[0])
    scopes = scopes_by_operation()
    for operation in in_scope():
        if (operation.method, operation.path) in recorded or any(part in operation.path for part in _OWN_CREDENTIALS):
            continue
        row = {"method": operation.method, "path": operation.path, "object_owner": "other"}
        for caller in roles:
            if _policy_refuses(operation, scopes.get(operation.name), caller):
                yield row, caller, False


def _policy_refuses(operation: Operation, scope: Any, caller: str) -> bool:
    """Sure of it: anybody's lists may be empty instead, and who makes something owns it, so only objects count."""
    if caller == "anonymous":
        return not is_public(operation) and scope is not None and not isinstance(scope, Unscoped)
    wanted = named(scope) if scope is not None else ()
    about_an_object = operation.path.endswith("}") or operation.method in {"PUT", "PATCH", "DELETE"}
    if not wanted or "{" not in operation.path or not about_an_object:
        return False
    organization, somebody = UUID(int=1), UUID(int=2)
    subject = _subject(caller, organization)
    everyone = {str(organization): frozenset({"read", "use"})}
    lists = {"template": everyone}  # a new template's access list
    places = [
        (action, Resource(kind, owner_id=somebody, organization_id=place, group_acl=lists.get(kind, {})))
        for kind, action in (text.split(":") for text in wanted)
        for place in (organization, None)
    ]
    return not any(decide(subject, action, resource) for action, resource in places)


def _subject(caller: str, organization: UUID) -> Subject:
    site = frozenset({caller} if caller in SITE_ROLES else ())
    own = frozenset({caller} if caller.startswith("organization-") else ())
    groups = frozenset({organization})
    return Subject("user", uuid4(), site_roles=site, organization_roles={organization: own}, group_ids=groups)
