"""Every operation as every role in a short time: one server, one set of objects, concurrent requests.

Reads are sent for every recorded cell. Changes are sent only by callers who must be refused: a refusal leaves the
objects unchanged, so one set serves all of them. For roles without a recording, the route's declaration and the
policy's table predict the result. `walk.py` checks that changes by authorized callers succeed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from typing import Any, Literal
from uuid import UUID, uuid4

import trio

from coder.domain.access.policy import Class, Subject, decide
from coder.domain.access.route_scopes import Scope, Unscoped, named
from tests.conformance.matrix import FIXED_COLUMNS, Matrix, good, licence_row, out_of_scope, request_of
from tests.conformance.scope import Operation, in_scope, permission_rows
from tests.conformance.walk import is_public
from tests.conformance.world import SITE_ROLES, Populated
from tests.kit.api.api_description import scopes_by_operation

SIDE_BY_SIDE = 8
_NO_HANDSHAKE = frozenset({400, 426})
"""Response of a stream to a request without a WebSocket handshake, after the caller was authorized."""
_REFUSED = frozenset({"401", "403", "404"})
_DENIED_AS_ERROR = "500"
"""Statuses by which the recorded release refused some changes."""
_NO_PERSONS = frozenset({Unscoped.AGENT, Unscoped.PROXY, Unscoped.PROVISIONER, Unscoped.CLIENT, Unscoped.APPLICATION})
"""Routes whose callers have their own credentials, so that a session does not count."""
_OFF = ("/oauth2/", "/api/v2/oauth2-provider/", "/api/experimental/watch-all-workspacebuilds")
"""Experiments, all disabled, as recorded."""
Expected = Literal["recorded", "refused", "open", "same"]
"""`open` is no refusal; `same` is the same status for every caller."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One request and its expected result."""

    row: dict[str, str]
    caller: str
    method: str
    url: str
    token: str
    body: Any
    expected: Expected

    def __str__(self) -> str:
        return f"{self.method} {self.row['path']} [{self.row['object_owner']}] as {self.caller}"


async def check_every_role(world: Populated, step: int) -> Matrix:
    """Check every cell of the short form, or with a step the cells of `sampled_cells`."""
    # Callers share one client: a session must not return as another caller's cookie.
    world.world.client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    # A task is prepared by pausing it, which stops its workspace's agent: these cells come after all others are filled
    # in.
    expected = sorted(sampled_cells(step), key=lambda cell: "{task}" in cell[0]["path"])
    cells = [await _cell(world, *result) for result in expected]
    matrix, alike = Matrix(), defaultdict[str, set[int]](set)
    send, receive = trio.open_memory_channel[Cell](len(cells))
    async with trio.open_nursery() as nursery, send:
        for cell in cells:
            send.send_nowait(cell)
        for _ in range(SIDE_BY_SIDE):
            nursery.start_soon(_ask_all, world, receive.clone(), matrix, alike)
    matrix.wrong += [
        f"{name}: {sorted(result)}, as callers differ" for name, result in alike.items() if len(result) > 1
    ]
    return matrix


async def _cell(world: Populated, row: dict[str, str], caller: str, expected: Expected) -> Cell:
    asked = await request_of(world, row, caller)
    return Cell(row, caller, row["method"], asked.url, asked.token, asked.body, expected)


async def _ask_all(
    world: Populated, cells: trio.MemoryReceiveChannel[Cell], matrix: Matrix, alike: dict[str, set[int]]
) -> None:
    async with cells:
        async for cell in cells:
            response = await world.ask(cell.method, cell.url, cell.token, cell.body)
            matrix.cells += 1
            text = response.text if "event-stream" not in response.headers.get("content-type", "") else ""
            status = response.status_code
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


def sampled_cells(step: int) -> Iterator[tuple[dict[str, str], str, Expected]]:
    """Return one in `step` callers of every operation, others for the next one: all operations and all callers."""
    rows: dict[tuple[str, ...], int] = {}
    numbers = {caller: number for number, caller in enumerate(callers(permission_rows()[0]))}
    for row, caller, expected in (*recorded_cells(), *predicted_cells()):
        number = rows.setdefault((*_operation(row), row["object_owner"]), len(rows))
        if (number + numbers[caller]) % step == 0:
            yield row, caller, expected


def recorded_cells() -> Iterator[tuple[dict[str, str], str, Expected]]:
    """Return (row, caller, `recorded`) of cells that can be requested without a change."""
    for row in permission_rows():
        if out_of_scope(row) or _of_caller(row):
            continue
        for caller in callers(row):
            if row["method"] == "GET" or _must_be_refused(row, caller):
                yield row, caller, "recorded"


def callers(row: dict[str, str]) -> list[str]:
    return [name for name in row if name not in FIXED_COLUMNS]


def _must_be_refused(row: dict[str, str], caller: str) -> bool:
    if caller == "anonymous":
        return row[caller] == "401"
    return row[caller] in {*_REFUSED, _DENIED_AS_ERROR} and _depends_on_role(row)


def _depends_on_role(row: dict[str, str]) -> bool:
    """Whether the status depends on the role; otherwise the object is missing or the licence refused."""
    return row["owner"] not in {*_REFUSED, _DENIED_AS_ERROR} and not licence_row(row)


def _of_caller(row: dict[str, str]) -> bool:
    """Whether the object belongs to the caller. Creating one for each caller is left to the long form."""
    return row["object_owner"] == "self" and row["path"].startswith("/api/v2/workspace")


def predicted_cells() -> Iterator[tuple[dict[str, str], str, Expected]]:
    """Return (row, caller, expectation) of all cells without a recording, predicted by the route's declaration."""
    covered = {(*_operation(row), caller) for row, caller, _ in recorded_cells()}
    # Some routes check the body first, or an object that does not exist: their responses do not depend on the role.
    covered |= {
        (*_operation(row), caller)
        for row in permission_rows()
        if row["object_owner"] != "self" and (_depends_on_role(row) or row["owner"] == _DENIED_AS_ERROR)
        for caller in callers(row)
    }
    scopes = scopes_by_operation()
    for operation in in_scope():
        row = {"method": operation.method, "path": operation.path, "object_owner": "other"}
        for caller in callers(permission_rows()[0]):
            expected = expectation(operation, scopes[operation.name], caller)
            if expected is None:
                continue
            harmless = expected == "same" and operation.method != "GET"  # recorded as answered, and requested nowhere
            if harmless or (*_operation(row), caller) not in covered:
                yield row, caller, expected


def _operation(row: dict[str, str]) -> tuple[str, str]:
    return row["method"], row["path"].split(" ")[0]


def expectation(operation: Operation, scope: Scope, caller: str) -> Expected | None:
    """Return the result that `caller` must get; None when it depends on more than the role, or would cause a change."""
    if operation.path.startswith(_OFF) or scope in _NO_PERSONS:
        return "refused"
    if scope is Unscoped.OPTIONAL:
        return None  # an authenticated caller gets more information, or is the only one
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
    """Whether the policy certainly refuses. Lists may be empty instead, and a creator owns the object, so only objects
    count.
    """
    about_an_object = operation.path.endswith("}") or operation.method in {"PUT", "PATCH", "DELETE"}
    if not named(scope) or "{" not in operation.path or not (about_an_object or "{workspace" in operation.path):
        return False
    return not any(_decisions(operation, scope, caller))


def _policy_allows(operation: Operation, scope: Scope, caller: str) -> bool:
    return all(_decisions(operation, scope, caller))


def _decisions(operation: Operation, scope: Scope, caller: str) -> list[bool]:
    """Return the decisions for another user's object in the organization and outside of it, for each sufficient
    scope.
    """
    organization = UUID(int=1)
    everyone = {str(organization): frozenset({"read", "use"})}
    lists = {"template": everyone}  # access list of a new template
    subject = _subject(caller, organization)
    result = []
    for kind, action in (text.split(":") for text in named(scope)):
        owner = subject.user_id if kind == "user" and "{user}" not in operation.path else UUID(int=2)
        result += [
            decide(subject, action, Class(kind, owner_id=owner, organization_id=place, group_acl=lists.get(kind, {})))
            for place in (organization, None)
        ]
    return result


def _subject(caller: str, organization: UUID) -> Subject:
    site = frozenset({caller} if caller in SITE_ROLES else ())
    own = frozenset({caller} if caller.startswith("organization-") else ())
    groups = frozenset({organization})
    return Subject("user", uuid4(), site_roles=site, organization_roles={organization: own}, group_ids=groups)
