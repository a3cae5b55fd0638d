"""Every cell of permissions.tsv: one caller, one call, the recorded status.

Licence-gated refusals are the intended difference: where a licence refused every caller, the owner must be allowed
here. The recorded release refused some changes with 500; 400, 403 and 404 are accepted for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.conformance.bodies import QUERIES
from tests.conformance.scope import permission_rows
from tests.conformance.world import UNKNOWN, Populated

FIXED_COLUMNS = frozenset({"method", "path", "object_owner"})
_PERSONAL = ("/password", "/status/", "/roles", "/logout", "/profile")
"""Operations that change the user in the path: a new user is created afterwards."""
_OUT_OF_SCOPE = ("/chats", "/ai-gateway", "/ai/", "/licenses", "/premium-funnel", "/agent-firewall")


@dataclass
class Matrix:
    """The compared cells, and those that differ."""

    cells: int = 0
    wrong: list[str] = field(default_factory=list)


async def check_matrix(world: Populated, methods: frozenset[str] | None = None) -> Matrix:
    """Check all rows in scope, or those of some methods."""
    matrix = Matrix()
    for row in permission_rows():
        if out_of_scope(row) or (methods and row["method"] not in methods):
            continue
        for caller in [name for name in row if name not in FIXED_COLUMNS]:
            await _check(world, row, caller, matrix)
    return matrix


def out_of_scope(row: dict[str, str]) -> bool:
    return any(part in row["path"] for part in _OUT_OF_SCOPE)


async def _check(world: Populated, row: dict[str, str], caller: str, matrix: Matrix) -> None:
    matrix.cells += 1
    status, text = await _ask(world, row, caller)
    if not good(row, caller, status, text):
        place = f"{row['method']} {row['path']} [{row['object_owner']}] as {caller}"
        matrix.wrong.append(f"{place}: {row[caller]} became {status}{' (missing)' if 'Route not' in text else ''}")


def licence_row(row: dict[str, str]) -> bool:
    """Whether the licence refused every signed-in caller who could see the object."""
    callers = [name for name in row if name not in FIXED_COLUMNS and name != "anonymous"]
    return all(row[name] == "403" for name in callers) or "/external-agent/" in row["path"]


def good(row: dict[str, str], caller: str, status: int, text: str) -> bool:
    if status == 405 or ("Route not found" in text and row[caller] != "404"):
        return False
    if status == int(row[caller]):
        return True
    if licence_row(row):
        if caller == "anonymous":
            return status in {401, 403, int(row[caller])}
        visible = "/external-agent/" in row["path"] or status not in {403, 405}
        return status < 500 and (caller != "owner" or visible)
    return int(row[caller]) == 500 and status in {400, 403, 404}


@dataclass(frozen=True, slots=True)
class MatrixRequest:
    """A request for a row and a caller."""

    url: str
    token: str
    body: Any
    who: str
    "Owner of the objects in the request."


async def request_of(world: Populated, row: dict[str, str], caller: str) -> MatrixRequest:
    """Return the request, after creating the objects it needs."""
    kind = row["object_owner"]
    path = row["path"].split(" ")[0]
    # In the recording, a caller without a session asked for another user's objects.
    who = {"self": "victim" if caller == "anonymous" else caller, "other": "victim", "owner": "boss"}.get(kind, "site")
    await world.token(caller)
    me = kind == "self"
    if who == "owner" and row["method"] != "GET" and any(part in path for part in (*_PERSONAL, "/users/{user}")):
        who, caller = "boss", "boss"  # the site's own administrator must stay unchanged
    query = QUERIES.get(path, "")
    if path.endswith(("/files/{fileID}", "/{organization}/templateversions")):
        await world.thing(who, "template")  # the owner of the file
    body = await world.body(f"{row['method']} {row['path']}", who)
    if query:
        query = "?" + await world.fill_text(query, who)
    unknown = {"{templateversionname}": "nosuch"} if kind == "none" else {}
    if path.endswith("/workspace/{workspacename}") and kind == "self":
        unknown = {"{workspacename}": "nosuch"}
    await world.prepare(f"{row['method']} {path}", who)
    filled = await world.fill(_with(path, unknown), who, me=me)
    return MatrixRequest(filled + query, await world.token(caller), body, who)


async def _ask(world: Populated, row: dict[str, str], caller: str) -> tuple[int, str]:
    path = row["path"].split(" ")[0]
    asked = await request_of(world, row, caller)
    response = await world.ask(row["method"], asked.url, asked.token, asked.body)
    if row["method"] != "GET" and response.status_code < 400:
        person = any(part in path for part in _PERSONAL) or path.endswith("{user}")
        world.drop(asked.who, person=person and asked.who != "site")
    return response.status_code, response.text if "event-stream" not in response.headers.get("content-type", "") else ""


def _with(path: str, values: dict[str, Any]) -> str:
    for name, value in values.items():
        path = path.replace(name, value)
    return path


__all__ = ["UNKNOWN", "Matrix", "check_matrix", "good", "licence_row", "request_of"]
