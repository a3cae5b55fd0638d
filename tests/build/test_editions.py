"""What the slim program lacks is exactly what only commands of the server need."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build"))
import editions

from coder.cli.core.edition import explain_missing, is_slim
from coder.cli.core.command_table import COMMANDS

NEEDS_SERVER = {
    "provisioner start",
    "provisionerd start",
    "reset-password",
    "server",
    "server create-admin-user",
    "server dbcrypt decrypt",
    "server dbcrypt delete",
    "server dbcrypt rotate",
    "server fix-oidc-links",
    "server postgres-builtin-serve",
    "server postgres-builtin-url",
    "server backup",
    "server restore",
    "server regenerate-vapid-keypair",
    "bundle",
    "terraform-provider",
    "workspace-proxy server",
}

WORKS_WITHOUT_SERVER = {"doctor", "upgrade"}
"""Commands that do less without the server's modules."""


def ours() -> list[str]:
    files = [path.relative_to(ROOT).with_suffix("") for path in (ROOT / "coder").rglob("*.py")]
    return sorted(
        {".".join(path.parts).removesuffix(".__init__") for path in files if "node_modules" not in path.parts}
    )


def test_slim_rooms_import_nothing_excluded() -> None:
    absent = set(editions.left_out(ours()))
    assert "coder.coderd.app" in absent and "coder.coderd.services.templates.examples" not in absent
    for name in ours():
        if not editions.in_server_rooms(name) and not name.startswith(("coder.cli", "coder.__main__")):
            assert not editions.imports(name) & absent, name


def test_server_only_commands_are_listed() -> None:
    """A new one here is a command that agents and developers do not have: is that meant?"""
    absent = set(editions.left_out(ours()))
    lacking = {
        words
        for words, (place, _) in COMMANDS.items()
        if editions.closure([f"coder.cli.{place.partition(':')[0]}"]) & absent
    }
    assert lacking == NEEDS_SERVER | WORKS_WITHOUT_SERVER


def test_full_program_reports_missing_module_as_defect() -> None:
    assert not is_slim()
    error = ModuleNotFoundError(name="coder.coderd.app")
    try:
        explain_missing(error)
    except ModuleNotFoundError as again:
        assert again is error
    else:
        raise AssertionError("a defect was explained away")


def test_slim_program_explains_missing_module(monkeypatch, capsys) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr("coder.cli.core.edition.find_spec", lambda _: None)
    assert explain_missing(ModuleNotFoundError(name="coder.coderd.config")) == 1
    assert "slim build" in capsys.readouterr().err


class Node:
    def __init__(self, identifier: str, filename: str | None = None) -> None:
        self.identifier, self.filename = identifier, filename


class Script(Node):
    pass


class Graph:
    """As much of PyInstaller's as is asked."""

    def __init__(self, edges: dict[str, list[str]], program: Script) -> None:
        self._edges = edges
        self._found = {name: Node(name, f"/site/{name}.py") for name in edges}
        self._found[program.identifier] = program
        self._base_modules = [self._found["codecs"]]

    def nodes(self) -> list[Node]:
        return list(self._found.values())

    def find_node(self, name: str) -> Node | None:
        return self._found.get(name)

    def get_edges(self, node: Node) -> tuple[list[Node], list[Node]]:
        return [self._found[name] for name in self._edges[node.identifier]], []


def test_slim_program_contains_reachable_modules() -> None:
    program = Script(str(editions.ROOT / "coder/__main__.py"), str(editions.ROOT / "coder/__main__.py"))
    edges = {
        "codecs": [],
        "coder": [],
        "coder.cli": ["yaml.reader", "sqlalchemy", "coder.coderd"],
        "coder.coderd": ["jwt"],
        "yaml": ["codecs"],
        "yaml.reader": [],
        "sqlalchemy": ["greenlet"],
        "greenlet": [],
        "jwt": [],
        "only.asked": [],
        program.identifier: ["coder.cli", "only.asked"],
    }
    found = editions._reachable(Graph(edges, program), {"coder.coderd", "sqlalchemy"})
    assert set(found) == {"codecs", "coder", "coder.cli", "yaml", "yaml.reader"}


@pytest.mark.parametrize(
    ("place", "belongs"),
    [
        ("yaml/py.typed", True),
        ("certifi/cacert.pem", False),
        ("base_library.zip", True),
        ("PyYAML-6.0.3.dist-info/METADATA", True),
        ("Flask-3.1.3.dist-info/METADATA", False),
        ("coder/coderd/examples/scratch/main.tf", True),
        ("coder/coderd/store/migrations/env.py", False),
        ("coder/agent/scripts/x.sh", True),
    ],
)
def test_data_belongs_to_included_packages(place: str, belongs: bool) -> None:
    packages = {"yaml", "coder"}
    assert editions._belongs(place, packages, editions._distributions(packages)) is belongs


@pytest.mark.parametrize(
    ("test", "runs"),
    [
        ("TYPE_CHECKING", {"coder.domain"}),
        ("typing.TYPE_CHECKING", {"coder.domain"}),
        ("not TYPE_CHECKING", {"coder.mesh", "coder.domain"}),
        ("TYPE_CHECKING or x", {"coder.mesh", "coder.domain"}),
        ("x", {"coder.mesh", "coder.domain"}),
    ],
)
def test_type_checking_imports_are_ignored(tmp_path: Path, test: str, runs: set[str]) -> None:
    for package in ("mesh", "domain"):
        (tmp_path / "coder" / package).mkdir(parents=True)
        (tmp_path / "coder" / package / "__init__.py").touch()
    source = f"if {test}:\n    import coder.mesh\nelse:\n    from coder.domain import x\n"
    (tmp_path / "coder/__init__.py").touch()
    (tmp_path / "coder/asked.py").write_text(source)
    assert editions.imports("coder.asked", tmp_path) == {"coder", *runs}


def test_distributions_are_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes a sixth of a second, and there are dozens of them."""
    calls = []
    monkeypatch.setattr(editions, "packages_distributions", lambda: calls.append(1) or {"yaml": ["PyYAML"]})
    monkeypatch.setattr(editions, "_reachable", lambda _graph, _absent: {"yaml": Node("yaml", "/site/yaml.py")})
    bindepend = SimpleNamespace(get_python_library_path=lambda: "", binary_dependency_analysis=lambda _binaries: [])
    monkeypatch.setitem(sys.modules, "PyInstaller", SimpleNamespace(__path__=[]))
    monkeypatch.setitem(sys.modules, "PyInstaller.depend", SimpleNamespace(bindepend=bindepend, __path__=[]))
    files = [(f"{name}.dist-info/METADATA", "", "DATA") for name in ("PyYAML-6.0.3", "Flask-3.1.3", "x-1")]
    part = editions.slim_part(SimpleNamespace(graph=None, binaries=[], datas=files), ())
    assert part["files"] == ["PyYAML-6.0.3.dist-info/METADATA"] and calls == [1]
