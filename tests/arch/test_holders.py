"""What `without_own_test.tsv` names as a file's holder has a way to it: a row is no excuse.

A holder (a test file, or a folder of them; several are divided by blanks) has a way to a file when it, or the kit it
imports,

- imports it, or names something that only it defines; of a file that only passes on: what it passes on;
- imports a file that leads to it: one step, further ones within a room (of the server: a noun group), one step;
- asks for an address whose view does so.

That is no proof that a rule is tested; it finds rows whose holder never meets the file.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import grimp
import pytest

from tests.arch.test_pairing import ALONE, ROOT, Reason, reasons

LONG_ENOUGH = 6
"Letters of a name that is taken for a mention; shorter ones are words."
EVERYTHING = {"coder.coderd.app"}
"Who imports the composition root has met nothing in particular."
PARAMETER = re.compile(r"<[^>]+>|\{[^}]+\}")
ADDRESS = re.compile(r'"(/(?:[\w.-]|<[^>"]+>|\{[^}"]+\}|/)*)"')
PREFIX = re.compile(r'url_prefix="([^"]+)"')
VIEWS = ("coder.coderd.http.", "coder.coderd.rpc_endpoints.")


@cache
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("coder")


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def room_of(module: str) -> str:
    parts = module.split(".")
    depth = {"coderd": 4 if parts[2:3] in (["services"], ["http"], ["store"]) else 3, "appproxy": 3, "domain": 3}.get(
        parts[1], 2
    )
    return ".".join(parts[:depth])


@cache
def text_of(path: Path) -> str:
    return path.read_text()


@cache
def words_of(path: Path) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text_of(path)))


@cache
def imports_of(path: Path) -> frozenset[str]:
    """Of a test, by AST: modules, and names that may be modules."""
    found = set()
    for node in ast.walk(ast.parse(text_of(path))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
            if not (ROOT / node.module.replace(".", "/")).is_dir():
                found.add(node.module)
    return frozenset(found)


@cache
def met_by(path: Path) -> frozenset[str]:
    """The product's modules that a test or its kit imports."""
    kits = [ROOT / f"{name.replace('.', '/')}.py" for name in imports_of(path) if name.startswith("tests.")]
    named = imports_of(path).union(*(imports_of(kit) for kit in kits if kit.is_file()))
    return frozenset((named & graph().modules) - EVERYTHING)


def defined_in(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.parse(text_of(path)).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return {name for name in names if len(name) >= LONG_ENOUGH}


@cache
def definitions() -> dict[str, int]:
    counted: dict[str, int] = {}
    for path in (ROOT / "coder").rglob("*.py"):
        if "node_modules" not in path.parts:
            for name in defined_in(path):
                counted[name] = counted.get(name, 0) + 1
    return counted


@cache
def own_names(path: Path) -> set[str]:
    return {name for name in defined_in(path) if definitions()[name] == 1}


@cache
def addresses() -> dict[str, re.Pattern[str]]:
    """By view, what a request to it looks like in a test: the whole address, or its fixed end behind a variable."""
    found = {}
    for path in sorted((ROOT / "coder/coderd").rglob("*.py")):
        module = module_of(path)
        if not module.startswith(VIEWS):
            continue
        prefix = next(iter(PREFIX.findall(text_of(path))), "")
        forms = []
        for rule in (rule for rule in ADDRESS.findall(text_of(path)) if len(rule) > 4 or prefix):
            whole = prefix + rule if not rule.startswith("/api/") else rule
            end = PARAMETER.split(rule)[-1]
            forms.append(r"[^/\"'\s]+".join(map(re.escape, PARAMETER.split(whole))))
            if len(end) > LONG_ENOUGH:
                forms.append(r"\}" + re.escape(end))
        if forms:
            found[module] = re.compile(rf"(?:{'|'.join(forms)})(?=[\"'?])")
    return found


@cache
def asked_by(path: Path) -> frozenset[str]:
    return frozenset(module for module, form in addresses().items() if form.search(text_of(path)))


@cache
def reached_from(module: str) -> frozenset[str]:
    """What a module imports, and what that leads to without leaving its room."""
    reached = {module}
    waiting = {module, *_imported_by(module)}
    while waiting:
        here = waiting.pop()
        reached.add(here)
        waiting |= {name for name in _imported_by(here) if name not in reached and room_of(name) == room_of(here)}
    return frozenset(reached)


def _imported_by(module: str) -> set[str]:
    return set(graph().find_modules_directly_imported_by(module)) - EVERYTHING


def holders_of(reason: Reason) -> list[Path]:
    found = []
    for name in reason.held_by.split():
        holder = ROOT / name
        found += [holder] if holder.is_file() else sorted(holder.rglob("test_*.py"))
    return found


@cache
def steps_before(path: Path) -> frozenset[str]:
    """Who is met, meets the file: itself, its folder as one, its importers; what it hands on, if nothing else."""
    module = module_of(path)
    before = {module, module.rpartition(".")[0], *graph().find_modules_that_directly_import(module)}
    if only_passes_on(path):
        before |= graph().find_modules_directly_imported_by(module)
    return frozenset(before - EVERYTHING)


def only_passes_on(path: Path) -> bool:
    handed = (ast.Import, ast.ImportFrom, ast.Expr, ast.Assign)
    return all(isinstance(node, handed) for node in ast.parse(text_of(path)).body) and "__all__" in text_of(path)


@cache
def reached_by(test: Path) -> frozenset[str]:
    return frozenset[str]().union(*(reached_from(module) for module in met_by(test) | asked_by(test)))


def meets(test: Path, path: Path) -> bool:
    return bool(own_names(path) & words_of(test) or steps_before(path) & reached_by(test))


@pytest.mark.parametrize("reason", reasons(), ids=lambda reason: f"{reason.folder}:{min(reason.files)}")
def test_a_holder_has_a_way_to_what_it_holds(reason: Reason) -> None:
    if "*" in reason.files:
        return  # a whole floor, held by what is asked of every route, command or option
    never_met = [
        path.stem for path in ALONE if reason.covers(path) and not any(meets(test, path) for test in holders_of(reason))
    ]
    assert not never_met, f"{reason.held_by} does not lead to them"
