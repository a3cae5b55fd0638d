"""Every operation as every role, in the time a test suite has: one server, one set of objects, requests side by side.

Reading is asked for in every recorded cell. What changes something is asked for by whoever must be refused: a refusal
leaves the objects as they are, so one set serves all of them. Where nothing was recorded of a role, what the route
declares and the policy's own table say what must come; that the rightful caller of a change succeeds is `walk.py`'s.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from typing import Any, Literal
from uuid import UUID, uuid4

import trio

from coder.domain.access.policy import Resource, Subject, decide
from coder.domain.access.route_scopes import Scope, Unscoped, named
from tests.conformance.matrix import FIXED_COLUMNS, Matrix, good, licence_row, out_of_scope, request_of
from tests.conformance.scope import Operation, in_scope, permission_rows
from tests.conformance.walk import is_public
from tests.conformance.world import SITE_ROLES, Populated
from tests.kit.api.api_description import scopes_by_operation

SIDE_BY_SIDE = 8
_NO_HANDSHAKE = frozenset({400, 426})
"""What a stream answers to a request that asks for no WebSocket, once it let the caller in."""
_REFUSED = frozenset({"401", "403", "404"})
_DENIED_AS_ERROR = "500"
"""How the recorded release refused some changes."""
_NO_PERSONS = frozenset({Unscoped.AGENT, Unscoped.PROXY, Unscoped.PROVISIONER, Unscoped.CLIENT, Unscoped.APPLICATION})
"""Callers there have credentials of their own; a session is none."""
_OFF = ("/oauth2/", "/api/v2/oauth2-provider/", "/api/experimental/watch-all-workspacebuilds")
"""Experiments, and none is on: so it was recorded."""
Expected = Literal["recorded", "refused", "open", "same"]
"""`open` is no refusal; `same` is the same status for everybody."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One request and what judges its answer."""

    row: dict[str, str]
    caller: str
    method: str
    url: str
    token: str
    body: Any
    expected: Expected

    def __str__(self) -> str:
        return f"{self.method} {self.row['path']} [{self.row['object_owner']}] as {self.caller}"


async def check_every_role(world: Populated) -> Matrix:
    """Asks all cells of the short form."""
    # Callers share one client: nobody's session may come back as somebody else's cookie.
    world.world.client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    # A task is prepared by pausing it, which takes its workspace's agent away: those come when all else is filled in.
    wanted = sorted([*recorded_cells(), *predicted_cells()], key=lambda cell: "{task}" in cell[0]["path"])
    cells = [await _cell(world, *found) for found in wanted]
    matrix, alike = Matrix(), defaultdict[str, set[int]](set)
    send, receive = trio.open_memory_channel[Cell](len(cells))
    async with trio.open_nursery() as nursery, send:
        for cell in cells:
            send.send_nowait(cell)
        for _ in range(SIDE_BY_SIDE):
            nursery.start_soon(_ask_all, world, receive.clone(), matrix, alike)
    matrix.wrong += [f"{name}: {sorted(found)}, as callers differ" for name, found in alike.items() if len(found) > 1]
    return matrix


async def _cell(world: Populated, row: dict[str, str], caller: str, expected: Expected) -> Cell:
    asked = await request_of(world, row, caller)
    return Cell(row, caller, row["method"], asked.url, asked.token, asked.body, expected)


async def _ask_all(
    world: Populated, cells: trio.MemoryReceiveChannel[Cell], matrix: Matrix, alike: dict[str, set[int]]
) -> None:
    async with cells:
        async for cell in cells:
            answer = await world.ask(cell.method, cell.url, cell.token, cell.body)
            matrix.cells += 1
            text = answer.text if "event-stream" not in answer.headers.get("content-type", "") else ""
            status = answer.status_code
            if cell.expected == "recorded":
                if not good(cell.row, cell.caller, status, text):
                    matrix.wrong.append(f"{cell}: {cell.row[cell.caller]} became {status}")
            elif cell.expected == "same":
                alike[f"{cell.method} {cell.row['path']}"].add(status)
            elif not _as_expected(cell, status, text):
                matrix.wrong.append(f"{cell}: {cell.expected} became {status}")


def _as_expected(cell: Cell, status: int, text: str) -> bool:
    if status == 405 or "Route not found" in text:
        return False
    if cell.expected == "refused":
        return 400 <= status < 500
    return status < 400 or status in _NO_HANDSHAKE


def recorded_cells() -> Iterator[tuple[dict[str, str], str, Expected]]:
    """(row, caller, `recorded`) of what may be asked without a change."""
    for row in permission_rows():
        if out_of_scope(row) or _of_a_person_itself(row):
            continue
        for caller in callers(row):
            if row["method"] == "GET" or _must_be_refused(row, caller):
                yield row, caller, "recorded"


def callers(row: dict[str, str]) -> list[str]:
    return [name for name in row if name not in FIXED_COLUMNS]


def _must_be_refused(row: dict[str, str], caller: str) -> bool:
    if caller == "anonymous":
        return row[caller] == "401"
    return row[caller] in {*_REFUSED, _DENIED_AS_ERROR} and _speaks_of_roles(row)


def _speaks_of_roles(row: dict[str, str]) -> bool:
    """Otherwise there is no such object, or the licence refused."""
    return row["owner"] not in {*_REFUSED, _DENIED_AS_ERROR} and not licence_row(row)


def _of_a_person_itself(row: dict[str, str]) -> bool:
    """Objects of each caller's own would have to be made for each; the long form does."""
    return row["object_owner"] == "self" and row["path"].startswith("/api/v2/workspace")


def predicted_cells() -> Iterator[tuple[dict[str, str], str, Expected]]:
    """(row, caller, what must come) of everything the recordings do not say, by what each route declares."""
    told = {(*_operation(row), caller) for row, caller, _ in recorded_cells()}
    # Some routes look at the body first, or for an object that is not there: no answer of theirs is about the role.
    told |= {
        (*_operation(row), caller)
        for row in permission_rows()
        if row["object_owner"] != "self" and (_speaks_of_roles(row) or row["owner"] == _DENIED_AS_ERROR)
        for caller in callers(row)
    }
    scopes = scopes_by_operation()
    for operation in in_scope():
        row = {"method": operation.method, "path": operation.path, "object_owner": "other"}
        for caller in callers(permission_rows()[0]):
            expected = expectation(operation, scopes[operation.name], caller)
            if expected is None:
                continue
            harmless = expected == "same" and operation.method != "GET"  # recorded to be answered, and asked nowhere
            if harmless or (*_operation(row), caller) not in told:
                yield row, caller, expected


def _operation(row: dict[str, str]) -> tuple[str, str]:
    return row["method"], row["path"].split(" ")[0]


def expectation(operation: Operation, scope: Scope, caller: str) -> Expected | None:
    """What `caller` must get; None where that hangs on more than the role, or a change would come of asking."""
    if operation.path.startswith(_OFF) or scope in _NO_PERSONS:
        return "refused"
    if scope is Unscoped.OPTIONAL:
        return None  # who signed in is told more, or is the only one who is told
    if scope in {Unscoped.PUBLIC, Unscoped.STREAM}:
        return "same"
    if caller == "anonymous":
        return None if is_public(operation) else "refused"
    if scope is Unscoped.ANY_KEY:
        return "open" if operation.method == "GET" else None
    if policy_refuses(operation, scope, caller):
        return "refused"
    return "open" if operation.method == "GET" and _policy_allows(operation, scope, caller) else None


def policy_refuses(operation: Operation, scope: Scope, caller: str) -> bool:
    """Sure of it: anybody's lists may be empty instead, and who makes something owns it, so only objects count."""
    about_an_object = operation.path.endswith("}") or operation.method in {"PUT", "PATCH", "DELETE"}
    if not named(scope) or "{" not in operation.path or not (about_an_object or "{workspace" in operation.path):
        return False
    return not any(_decisions(operation, scope, caller))


def _policy_allows(operation: Operation, scope: Scope, caller: str) -> bool:
    return all(_decisions(operation, scope, caller))


def _decisions(operation: Operation, scope: Scope, caller: str) -> list[bool]:
    """On somebody's object in the organization and on one outside of all, for each scope that would do."""
    organization = UUID(int=1)
    everyone = {str(organization): frozenset({"read", "use"})}
    lists = {"template": everyone}  # a new template's access list
    subject = _subject(caller, organization)
    found = []
    for kind, action in (text.split(":") for text in named(scope)):
        owner = subject.user_id if kind == "user" and "{user}" not in operation.path else UUID(int=2)
        found += [
            decide(
                subject, action, Resource(kind, owner_id=owner, organization_id=place, group_acl=lists.get(kind, {}))
            )
            for place in (organization, None)
        ]
    return found


def _subject(caller: str, organization: UUID) -> Subject:
    site = frozenset({caller} if caller in SITE_ROLES else ())
    own = frozenset({caller} if caller.startswith("organization-") else ())
    groups = frozenset({organization})
    return Subject("user", uuid4(), site_roles=site, organization_roles={organization: own}, group_ids=groups)
