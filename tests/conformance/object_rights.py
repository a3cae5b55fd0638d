"""Rights that each operation requires, and how they differ from those of the original: `docs/object-rights.md`.

`tests/data/access/object_rights.tsv` maps each statement of the original's database layer to our functions. The page is
written by `scripts/generate-object-rights` from that file and from a recording of all operations.
"""

from __future__ import annotations

import argparse
import csv
import logging
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import trio

from coder.coderd.http.server.declarations import Route, route_of
from coder.domain.access.route_scopes import Scope, Unscoped, named
from tests.conformance.permission_checks import Checks, record_checks
from tests.conformance.world import equipped
from tests.kit.api.api_description import application
from tests.kit.paths import DATA, ROOT

PAGE = ROOT / "docs" / "object-rights.md"
STATEMENTS = DATA / "access" / "object_rights.tsv"
VERDICTS = ("same", "stricter", "different", "system", "absent")
_HEAD = """# Rights of operations

For developers, and for administrators who compare this server with the original. `scripts/generate-object-rights`
writes this page: do not edit it. `tests/unit/conformance/test_object_rights.py` records the questions of all operations
again and compares.

## What each operation asks

A request passes two checks. The key must have the scope of the operation. Then the operation asks the policy
(`coder/domain/access/policy.py`) about each object that the request touches: the caller's roles, the access list of the
object, and the scope and allow list of the key decide. *One object* lists questions about an existing object; an allow
list must contain that object. *Class* lists questions about objects to create, lists and settings; an allow list must
contain all objects of the kind, unless the operation narrows its list to the listed objects.

The questions are those of a site owner with objects of another user. A refusal asks one more: without `read`, the
answer is 404.
"""
_UNASKED = """## Operations that ask nothing

These return settings that every user may see, or a secret names the caller's own object: the token of an agent, proxy
or provisioner, the secret of an application.
"""
_SECTIONS = {
    "stricter": """## Where this server asks for more than the original

The database layer of the original asks its caller statement by statement. `tests/data/access/object_rights.tsv` maps
each statement to our functions. Statements that ask the same here, and those without a caller (loops, daemons, agents),
are only in that file.
""",
    "different": """## Where this server asks something else
""",
    "absent": """## Statements without an operation here
""",
}
_EXPERIMENTS = ("oauth2", "workspace-build-updates")

_PUBLIC_SETTING = "any signed-in caller: a setting of the server that every user may see"
_REFUSED = "a part of the original that this product does not have: refused, or an empty list"
_OWN_KEY = "any signed-in caller, of the own session"
_BY_SCOPE = "any signed-in caller with the scope of the key"
WITHOUT_QUESTION = {
    **{
        f"{method} /api/v2/{part}/<path:_rest>": _REFUSED
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
        for part in ("agent-firewall", "ai-gateway")
    },
    "GET /api/experimental/chats": _REFUSED,
    "GET /api/experimental/chats/by-workspace": _REFUSED,
    "GET /api/v2/licenses": _REFUSED,
    "GET /api/experimental/watch-all-workspacebuilds": (
        "scope `workspace:read`; each event asks `workspace:read` of its workspace"
    ),
    "GET /api/v2/applications/host": _PUBLIC_SETTING,
    "GET /api/v2/deployment/ssh": _PUBLIC_SETTING,
    "GET /api/v2/derp-map": _PUBLIC_SETTING,
    "GET /api/v2/experiments": _PUBLIC_SETTING,
    "GET /api/v2/experiments/available": _PUBLIC_SETTING,
    "GET /api/v2/regions": _PUBLIC_SETTING,
    "GET /api/v2/workspaceagents/connection": _PUBLIC_SETTING,
    "GET /api/v2/wireguard": f"{_BY_SCOPE} `api_key:read`: the server's public key and address",
    "GET /api/v2/notifications/delivery": f"{_BY_SCOPE} `notification_template:read`: which ways of delivery exist",
    "GET /api/v2/notifications/dispatch-methods": (
        f"{_BY_SCOPE} `notification_template:read`: which ways of delivery exist"
    ),
    "GET /api/v2/notifications/settings": f"{_BY_SCOPE} `deployment_config:read`, as recorded: whether messages pause",
    "GET /api/v2/notifications/templates/custom": f"{_BY_SCOPE} `notification_template:read`: kinds of messages",
    "GET /api/v2/notifications/templates/system": f"{_BY_SCOPE} `notification_template:read`: kinds of messages",
    "POST /api/v2/notifications/custom": f"{_BY_SCOPE} `notification_message:create`: a message to the caller",
    "GET /api/v2/users/login": _OWN_KEY,
    "POST /api/v2/users/logout": _OWN_KEY,
    "GET /external-auth/<provider>/callback": (
        "`user:update_personal` of the caller, for a provider without device flow"
    ),
    "GET /gitauth/<provider>/callback": "`user:update_personal` of the caller, for a provider without device flow",
    "GET /oauth2/authorize": "any caller: a page that asks for consent",
}
"""Operations with a key that ask the policy nothing, with the reason."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of the original's database layer."""

    name: str
    original: str
    "What the original asks."
    functions: tuple[str, ...]
    "Our functions, `module:name` below coder/coderd/services or, with `http.`, below coder/coderd."
    asks: tuple[str, ...]
    "`kind:action` that these functions ask."
    verdict: str
    reason: str


def statements() -> list[Statement]:
    """Read the data file."""
    with STATEMENTS.open(newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [
            Statement(
                row["statement"],
                row["original"],
                tuple(row["functions"].split()),
                tuple(row["asks"].split()),
                row["verdict"],
                row["reason"],
            )
            for row in rows
        ]


def routes() -> Iterator[tuple[str, Route]]:
    """Yield all declared operations as `METHOD rule`."""
    app = application()
    for rule in app.url_map.iter_rules():
        route = route_of(app.view_functions[rule.endpoint])
        if route is not None:
            for method in route.methods or ("GET",):
                yield f"{method} {rule.rule}", route


async def recorded_checks() -> Checks:
    """Call all operations of a new server, and return the questions to the policy."""
    async with equipped(experiments=_EXPERIMENTS) as world:
        return await record_checks(world)


def render(checks: Checks) -> str:
    """Return the page."""
    scopes = {name: _scope(route.scope) for name, route in routes()}
    lines = [_HEAD, "| operation | scope of the key | one object | class of objects |", "| --- | --- | --- | --- |"]
    for operation in sorted(checks.by_operation, key=_by_path):
        found = checks.by_operation[operation]
        lines.append(f"| `{operation}` | {scopes[operation]} | {_names(found, 'object')} | {_names(found, 'class')} |")
    lines += ["", _UNASKED, "| operation | caller |", "| --- | --- |"]
    for operation in sorted(scopes.keys() - checks.by_operation.keys(), key=_by_path):
        lines.append(f"| `{operation}` | {WITHOUT_QUESTION.get(operation, scopes[operation])} |")
    for verdict, text in _SECTIONS.items():
        lines += ["", text, "| statement | the original asks | here | reason |", "| --- | --- | --- | --- |"]
        lines += [
            f"| {names} | {original} | {asks} | {reason} |" for names, original, asks, reason in _differences(verdict)
        ]
    return "\n".join(lines) + "\n"


def _by_path(operation: str) -> tuple[str, str]:
    method, _, path = operation.partition(" ")
    return path, method


def _scope(scope: Scope) -> str:
    return scope.value if isinstance(scope, Unscoped) else " or ".join(f"`{name}`" for name in named(scope))


def _names(checks: Iterable[tuple[str, str, str]], form: str) -> str:
    return " ".join(f"`{kind}:{action}`" for kind, action, of in sorted(checks) if of == form)


def _differences(verdict: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield (statements, what the original asks, what is asked here, reason), statements with equal rows together."""
    together: dict[tuple[str, tuple[str, ...], str], list[str]] = {}
    for item in statements():
        if item.verdict == verdict:
            together.setdefault((item.original, item.asks, item.reason), []).append(item.name)
    for (original, asks, reason), names in together.items():
        yield " ".join(names), original, " ".join(f"`{name.rstrip('*')}`" for name in asks), reason


def main() -> int:
    """Write the page, or with --check compare it; return 1 if it is stale."""
    parser = argparse.ArgumentParser(prog="scripts/generate-object-rights", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # from clients that leave streams early
    logging.disable(logging.ERROR)
    text = render(trio.run(recorded_checks))
    if arguments.check:
        return int(text != PAGE.read_text())
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
