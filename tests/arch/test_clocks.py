"""Whose time it is: the server asks its clock alone, and a test gives no date of its own to one of the system's clock.

A bound in a test is against hanging and says nothing about speed: a minute, unless the clock jumps.

A date that is written down is yesterday's for ever: what a server by the system's clock does with it changes with the
day the suite runs on. Such a test gives its server a clock, or counts from now.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OTHER_CLOCKS = re.compile(
    r"\bfunc\.(now|current_\w+|clock_timestamp)\b|\bdatetime\.(utc)?now\(|\btime\.time\(\)|\.today\("
)
"""Of the process, and of the database, which may be another machine's."""
THEIR_OWN = {
    "coder/appproxy/metrics/process_metrics.py": "when the process began, for the metric of that name",
    "coder/coderd/store/network/replicas.py": "the measurement that the server's clock follows",
}
OPENS_SERVER = re.compile(r"^(running_coderd|\w*world|world_\w+|deployment|agent_world)$")
A_DATE = re.compile(r"20(2[1-9]|[34]\d)-[01]\d-[0-3]\d")
"""2020 is long ago, 2100 far away, whenever that is read."""


def test_the_server_asks_its_clock() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for room in ("appproxy", "coderd", "domain", "wsproxy")
        for path in (ROOT / "coder" / room).rglob("*.py")
        if "migrations" not in path.parts and OTHER_CLOCKS.search(path.read_text())
    }
    assert found == set(THEIR_OWN)


MACHINE_CLOCKS = {
    "coder/coderd/processes/losses.py": "has no database; the health report corrects its times",
    "coder/coderd/services/foundation/context.py": "the default of tests and of the API's description",
    "coder/coderd/services/foundation/database_clock.py": "what a server's clock is until the database answers",
}
"""Modules of the server with the machine's clock: all others compare heartbeats with the database's."""


def test_servers_follow_the_database_clock() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "coder/coderd").rglob("*.py")
        if re.search(r"\bSystemClock\b", path.read_text())
    }
    assert found == set(MACHINE_CLOCKS)
    assert "SystemClock" not in (ROOT / "coder/cli/server/create_admin.py").read_text()


def is_fixed(node: ast.expr) -> bool:
    """`datetime(2026, 1, 1)`, with whatever is added to it, or the text of one."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and ast.unparse(part.func).endswith("datetime") and part.args:
            year = part.args[0]
            if isinstance(year, ast.Constant) and year.value in range(2021, 2050):
                return True
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and A_DATE.match(part.value):
            return True
    return False


def dated(text: str) -> Iterator[str]:
    """Functions that open a server without a clock and name a date."""
    tree = ast.parse(text)
    fixed = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and is_fixed(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for function in ast.walk(tree):
        if not isinstance(function, ast.AsyncFunctionDef):
            continue
        calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
        opens = [
            call
            for call in calls
            if isinstance(call.func, ast.Name) and OPENS_SERVER.match(call.func.id) and not _has_clock(call)
        ]
        names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        if "'clock'" in ast.unparse(function):
            continue  # among settings that are written before
        if opens and (names & fixed or any(is_fixed(statement) for statement in _expressions(function))):
            yield function.name


def _has_clock(call: ast.Call) -> bool:
    given = [*call.args, *(word.value for word in call.keywords)]
    return any(word.arg == "clock" for word in call.keywords) or any("lock" in ast.unparse(value) for value in given)


def _expressions(function: ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    return (node for node in ast.walk(function) if isinstance(node, ast.expr))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("async def test():\n  async with running_coderd() as w:\n    at = datetime(2026, 1, 1)", ["test"]),
        ("NOW = datetime(2026, 1, 1)\nasync def test():\n  async with workspace_world() as w:\n    put(NOW)", ["test"]),
        ("async def test():\n  async with running_coderd() as w:\n    put('2026-01-01T00:00:00Z')", ["test"]),
        ("async def test():\n  async with running_coderd(clock=c) as w:\n    at = datetime(2026, 1, 1)", []),
        ("async def test():\n  async with running_coderd() as w:\n    at = datetime(2100, 1, 1)", []),
        ("async def test():\n  at = datetime(2026, 1, 1)", []),
    ],
)
def test_what_is_found(text: str, found: list[str]) -> None:
    assert list(dated(text)) == found


def test_fixed_dates_need_a_fake_clock() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for room in ("unit", "recorded")
        for path in sorted((ROOT / "tests" / room).rglob("*.py"))
        for name in dated(path.read_text())
    ]
    assert not wrong, "\n".join(wrong)


LEAST_BOUND = 60
WAITS = {"fail_after", "wait", "communicate", "settimeout", "eventually"}
"""Give up after so many seconds, which they are told first or by a name."""
GIVES_UP = {*WAITS, "run", "get", "join", "check_output"}
"""Those, and what does it when it is told so by a name."""
ROOMS = "build conformance fuzz interop kit property recorded simnet system unit vectors".split()
SHORT = {
    ("network_namespaces.py", "wait"): "whatever does not end by itself is killed then, and nobody says that it did",
    ("scripted_http_servers.py", "settimeout"): "whoever connects and says nothing keeps all others waiting",
}
HTTPX = {f"httpx.{name}" for name in "AsyncClient Client get post put patch delete request stream".split()}


def _name(call: ast.expr) -> str:
    return call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "")


def bounds(call: ast.Call) -> Iterator[ast.expr]:
    """What a call is told of how long it may take."""
    name, given = _name(call.func), list(call.args)
    if name == "run_sync" and given and _name(given[0]) in WAITS:
        yield from given[1:]  # in a thread
    if name in WAITS:
        yield from given
    if name in GIVES_UP:
        yield from (word.value for word in call.keywords if word.arg in {"timeout", "seconds"})


def short_bounds(text: str) -> Iterator[tuple[int, str]]:
    """Lines with a bound that a slow machine passes. Helpers of a file in which clocks jump may be for those tests."""
    jumps = "autojump" in text or "MockClock" in text
    for function in ast.parse(text).body:
        if not isinstance(function, ast.AsyncFunctionDef | ast.FunctionDef | ast.ClassDef):
            continue
        if "clock:" in ast.unparse(function) or (jumps and not function.name.startswith("test_")):
            continue
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            given = [one.value for one in bounds(call) if isinstance(one, ast.Constant)]
            if any(isinstance(one, int | float) and 0 < one < LEAST_BOUND for one in given):
                yield call.lineno, _name(call.func)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("async def test():\n  with trio.fail_after(5):\n    pass", [2]),
        ("async def test():\n  with trio.fail_after(60):\n    pass", []),
        ("async def test(autojump_clock: Any):\n  with trio.fail_after(5):\n    pass", []),
        ("def test():\n  assert process.wait(30) == 0", [2]),
        ("def test():\n  subprocess.run(argv, timeout=20)", [2]),
        ("def test():\n  async def inner():\n    await trio.to_thread.run_sync(event.wait, 30)", [3]),
        ("async def test():\n  await eventually(look, seconds=30)", [2]),
        ("async def test():\n  await event.wait()", []),
        ("async def test():\n  await node.ping(timeout=0.3)", []),
    ],
)
def test_which_bounds_are_short(text: str, found: list[int]) -> None:
    assert [line for line, _ in short_bounds(text)] == found


def test_bounds_are_against_hanging() -> None:
    found = {
        (path.name, name): f"{path.relative_to(ROOT)}:{line}"
        for room in ROOMS
        for path in sorted((ROOT / "tests" / room).rglob("*.py"))
        for line, name in short_bounds(path.read_text())
    }
    assert [place for key, place in found.items() if key not in SHORT] == []
    assert SHORT.keys() <= found.keys(), "reasons for bounds that are gone"


def unbounded(text: str) -> Iterator[int]:
    """Lines that leave it to httpx how long an answer may take."""
    for call in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)):
        if ast.unparse(call.func) in HTTPX and not any(word.arg in {"timeout", None} for word in call.keywords):
            yield call.lineno


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("httpx.AsyncClient(base_url=url)", [1]),
        ("httpx.post(url, data=form)", [1]),
        ("httpx.post(url, data=form, timeout=60)", []),
        ("http_client(url)", []),
        ("httpx.Response(200)", []),
    ],
)
def test_what_httpx_bounds_is_found(call: str, found: list[int]) -> None:
    assert list(unbounded(call)) == found


def test_http_clients_wait_a_minute() -> None:
    """`http_client` of tests/kit/api/http_clients.py gives it a minute."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if "httpx" in (text := path.read_text())
        for line in unbounded(text)
    ]
    assert not wrong, "\n".join(wrong)
