"""Static analysis of reads without a subject (`coder/coderd/store/*/system_*.py`) in services.

Every call of such a read must be of one of these forms:

- checked: the row flows into a call that also receives the subject (`require(subject, "read", resource(row))`);
- related: the id is an attribute of a row that was loaded before, so it did not come from a request;
- system: the function works for the server itself, a daemon, an agent or a sign-in, and is listed with a reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SERVICES = Path("coder/coderd/services")
_STORE = "coder.coderd.store"
_SUBJECTS = frozenset({"subject", "caller", "asker"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Read:
    """Call of a read without a subject."""

    place: str
    """`people/users.py:find_user`."""
    name: str
    """`system_users.get_user`."""
    form: str
    """`checked`, `related`, or empty."""


@dataclass(slots=True)
class _Scope:
    """Names of a function and the functions around it."""

    rows: set[str] = field(default_factory=set)
    """Variables that hold loaded rows, or parts of them."""
    checked: set[str] = field(default_factory=set)
    """Variables that a call with the subject received."""


def find_reads(root: Path = SERVICES) -> list[Read]:
    """Return the reads of all services."""
    return [read for path in sorted(root.rglob("*.py")) for read in _reads_of(path, root)]


def _reads_of(path: Path, root: Path) -> Iterator[Read]:
    tree = ast.parse(path.read_text())
    modules, functions = _imports(tree)
    if not modules and not functions:
        return
    for names, outermost in _outermost(tree):
        scope = _scope(outermost, modules, functions)
        for inner, call, name, arguments in _calls(outermost, names, modules, functions):
            place = f"{path.relative_to(root)}:{inner}"
            yield Read(place, name, _form(outermost, call, arguments, scope))


def _imports(tree: ast.Module) -> tuple[set[str], dict[str, str]]:
    modules, functions = set[str](), dict[str, str]()
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith(_STORE):
            continue
        module = (node.module or "").rpartition(".")[2]
        for alias in node.names:
            if alias.name.startswith("system_"):
                modules.add(alias.asname or alias.name)
            elif module.startswith("system_"):
                functions[alias.asname or alias.name] = f"{module}.{alias.name}"
    return modules, functions


def _outermost(tree: ast.Module) -> Iterator[tuple[str, _Function]]:
    for node in tree.body:
        if isinstance(node, _Function):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for item in node.body:
                if isinstance(item, _Function):
                    yield f"{node.name}.{item.name}", item


def _read_name(node: ast.expr, modules: set[str], functions: dict[str, str]) -> str:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
        return f"{node.value.id}.{node.attr}"
    return functions.get(node.id, "") if isinstance(node, ast.Name) else ""


def _calls(
    function: _Function, name: str, modules: set[str], functions: dict[str, str]
) -> Iterator[tuple[str, ast.Call, str, list[ast.expr]]]:
    """Yield the calls of reads: direct ones, and those that a database method makes (`ctx.db.read(read, id)`)."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        direct = _read_name(node.func, modules, functions)
        passed = _read_name(node.args[0], modules, functions) if node.args else ""
        if direct or passed:
            yield name, node, direct or passed, node.args[1:]


def _scope(function: _Function, modules: set[str], functions: dict[str, str]) -> _Scope:
    scope = _Scope()
    for inner in ast.walk(function):
        if isinstance(inner, _Function):
            for argument in (*inner.args.args, *inner.args.kwonlyargs):
                annotation = ast.unparse(argument.annotation) if argument.annotation else ""
                if annotation.split(" |")[0].endswith(("Row", "View", "Agent", "Detail", "Loaded", "Version")):
                    scope.rows.add(argument.arg)
    for _ in range(3):  # names flow through a few assignments
        for node in ast.walk(function):
            for target, value in _bindings(node):
                if _comes_from_rows(value, scope, modules, functions):
                    scope.rows |= {name.id for name in ast.walk(target) if isinstance(name, ast.Name)}
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and _has_subject(node):
            scope.checked |= {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
    for _ in range(3):
        for node in ast.walk(function):
            for target, value in _bindings(node):
                names = {name.id for name in ast.walk(target) if isinstance(name, ast.Name)}
                if names & scope.checked:
                    scope.checked |= {name.id for name in ast.walk(value) if isinstance(name, ast.Name)}
    return scope


def _bindings(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        yield node.target, node.iter


def _comes_from_rows(value: ast.expr, scope: _Scope, modules: set[str], functions: dict[str, str]) -> bool:
    """Return whether a value is a loaded row or a part of one: the result of a read, a loader, or their attribute."""
    for node in ast.walk(value):
        if isinstance(node, ast.Call):
            if _has_subject(node):
                return True
            if _read_name(node.func, modules, functions):
                return True
            if node.args and _read_name(node.args[0], modules, functions):
                return True
        if isinstance(node, ast.Attribute) and _root(node) in scope.rows:
            return True
    return False


def _has_subject(call: ast.Call) -> bool:
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(isinstance(value, ast.Name) and value.id in _SUBJECTS for value in values)


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _form(function: _Function, call: ast.Call, arguments: list[ast.expr], scope: _Scope) -> str:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and node is not call and _has_subject(node) and call in ast.walk(node):
            return "checked"
        for target, value in _bindings(node):
            if call in ast.walk(value):
                names = {name.id for name in ast.walk(target) if isinstance(name, ast.Name)}
                if names & scope.checked:
                    return "checked"
    if arguments and all(_is_part(argument, scope) for argument in arguments[:1]):
        return "related"
    return ""


def _is_part(node: ast.expr, scope: _Scope) -> bool:
    if isinstance(node, ast.Attribute):
        return _root(node) in scope.rows
    return isinstance(node, ast.Name) and node.id in scope.rows
