"""Every function, method and class of the product is named a second time in it: what nobody calls goes.

Names are counted as words over the product's Python, its dashboard, its build and its scripts, so a name that two
things share hides one of them; what is found here is dead for certain.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.kit.paths import ROOT

GENERATED = ("/proto/", "/migrations/versions/", "/dashboard/")
CALLED_BY_LIBRARIES = {
    # asyncssh
    "begin_auth",
    "connection_requested",
    "server_requested",
    "unix_connection_requested",
    "unix_server_requested",
    "reverse_map_path",
    # asyncio's transports, as asyncssh uses ours
    "pause_reading",
    "resume_reading",
    "set_write_buffer_limits",
    "get_write_buffer_size",
    "can_write_eof",
    "set_protocol",
    "get_protocol",
    # the import system, MkDocs
    "create_module",
    "exec_module",
    "get_code",
    "get_source",
    "get_resource_reader",
    "on_config",
    "on_page_markdown",
    # Quart's and Hypercorn's connections, SQLAlchemy
    "_send_pings",
    "_check_protocol",
    "process_result_value",
}
FOR_TESTS = {
    "start_handshake": "tests begin handshakes when they want them, the product when there is data",
    "FrameReader": "vectors and fuzzers cut recorded streams with it; connections read into buffers of their own",
    "feed_untrusted": "as FrameReader, whose method it is",
    "node_text": "a form of the key in upstream's vectors",
    "machine_text": "a form of the key in upstream's vectors",
    "disco_short": "a form of the key in upstream's vectors",
    "add_address": "interfaces of tests have several addresses",
    "icmp_echo": "how tests ping an interface; people ping by disco",
}


def _sources() -> Iterator[tuple[Path, str]]:
    for folder in ("coder", "build", "scripts"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not any(part in str(path) for part in GENERATED) and "node_modules" not in path.parts:
                yield path, path.read_text(encoding="utf-8")


def _dashboard_words() -> Counter[str]:
    """The pages use the API's types; the file made from those names them all and counts for nothing."""
    sources = (ROOT / "coder/dashboard/src").rglob("*.ts*")
    return Counter(
        word for path in sources if path.name != "types.ts" for word in re.findall(r"\w+", path.read_text("utf-8"))
    )


def _definitions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Without those that a decorator hands on (routes, validators, fixtures of click-like tables)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not _is_handed_on(node):
            yield node


def _is_handed_on(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    plain = {"property", "cached_property", "staticmethod", "classmethod", "override", "dataclass", "cache"}
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name not in plain:
            return True
    return False


def test_every_definition_is_used() -> None:
    words = _dashboard_words()
    for recipe in (ROOT / "build").glob("*.spec"):
        words.update(re.findall(r"\w+", recipe.read_text()))
    parsed = []
    for path, text in _sources():
        words.update(re.findall(r"\w+", text))
        parsed.append((path, ast.parse(text)))
    dead = {
        node.name: f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path, tree in parsed
        for node in _definitions(tree)
        if words[node.name] == 1 and not node.name.startswith("__")
    }
    assert [line for name, line in dead.items() if name not in CALLED_BY_LIBRARIES | FOR_TESTS.keys()] == []
    assert sorted(FOR_TESTS.keys() - dead.keys()) == [], "the product uses these: take them off the list"
    assert sorted(CALLED_BY_LIBRARIES - dead.keys()) == [], "these are gone or called: take them off the list"
