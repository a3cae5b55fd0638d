"""The syntax tree of a live function, and what its names stand for.

Not here: what an expression's type is (`inference.py`). Needs the source files; a frozen program carries the finished
document instead.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

MISSING: Any = object()
"""What a name stands for when that cannot be said."""

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@functools.cache
def tree_of(module: str) -> ast.Module:
    """The parsed source of a loaded module. Raises OSError without the file."""
    path = getattr(sys.modules[module], "__file__", None)
    if path is None:
        raise OSError(f"{module} has no source")
    return ast.parse(Path(path).read_text(encoding="utf-8"))


@functools.cache
def _functions(module: str) -> dict[str, FunctionNode]:
    """Every function of a module by its qualified name, inner ones with `<locals>` as in code objects."""
    found: dict[str, FunctionNode] = {}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                found[prefix + child.name] = child
                visit(child, f"{prefix}{child.name}.<locals>.")
            elif isinstance(child, ast.ClassDef):
                visit(child, f"{prefix}{child.name}.")
            else:
                visit(child, prefix)

    visit(tree_of(module), "")
    return found


def node_of(function: FunctionType) -> FunctionNode | None:
    """None for lambdas and functions made elsewhere."""
    # A wrapper calls itself after what it wraps; its code object remembers where it was written.
    module = function.__globals__.get("__name__", "")
    try:
        return _functions(module).get(function.__code__.co_qualname)
    except (OSError, KeyError, SyntaxError):
        return None


@functools.cache
def module_names(module: str) -> Mapping[str, Any]:
    """A module's globals, with what it imports for type checkers only."""
    here = sys.modules[module]
    names = dict(vars(here))
    try:
        body = tree_of(module).body
    except OSError:
        return names
    for node in body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            names |= imported(node.body)
    return names


def imported(nodes: list[ast.stmt]) -> dict[str, Any]:
    """What the import statements among `nodes` bind."""
    found: dict[str, Any] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            module = import_module(node.module)
            for alias in node.names:
                value = getattr(module, alias.name, MISSING)
                if value is MISSING:
                    value = import_module(f"{node.module}.{alias.name}")
                found[alias.asname or alias.name] = value
    return found


@functools.cache
def own_nodes(node: FunctionNode) -> tuple[ast.AST, ...]:
    """Every node of the function's body, those of inner functions too; not its decorators."""
    return tuple(found for statement in node.body for found in ast.walk(statement))


@functools.cache
def _inner_imports(node: FunctionNode) -> dict[str, Any]:
    return imported([item for item in own_nodes(node) if isinstance(item, ast.ImportFrom)])


class Scope:
    """The names of one function, and what its caller put into its parameters."""

    def __init__(
        self, function: FunctionType, node: FunctionNode, bound: Mapping[str, tuple[ast.expr, Scope]] | None = None
    ) -> None:
        self.function = function
        self.node = node
        self.bound = dict(bound or {})
        self.module = str(function.__globals__["__name__"])
        self._names = module_names(self.module)
        self._closure = inspect.getclosurevars(function).nonlocals if function.__closure__ else {}
        self._imports = _inner_imports(node)
        arguments = node.args
        self.parameters = [item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        self.assigned = _assignments(node)

    def look_up(self, name: str) -> Any:
        """The object a name stands for before anything runs; MISSING for local variables."""
        if name in self.parameters or name in self.assigned:
            return MISSING
        for names in (self._imports, self._closure, self._names, vars(builtins)):
            if name in names:
                return names[name]
        return MISSING

    def resolve(self, node: ast.AST) -> Any:
        """The live object an expression names (`users.find_user`), or MISSING."""
        if isinstance(node, ast.Name):
            if node.id in self.bound:
                expression, scope = self.bound[node.id]
                return scope.resolve(expression)
            return self.look_up(node.id)
        if isinstance(node, ast.Attribute):
            base = self.resolve(node.value)
            if base is not MISSING and (inspect.ismodule(base) or inspect.isclass(base)):
                return getattr(base, node.attr, MISSING)
        return MISSING

    def bind(self, function: FunctionType, node: FunctionNode, call: ast.Call) -> Scope:
        """The scope of a function called from here with these arguments."""
        names = [item.arg for item in (*node.args.posonlyargs, *node.args.args)]
        bound: dict[str, tuple[ast.expr, Scope]] = {}
        for name, value in zip(names, call.args, strict=False):
            if not isinstance(value, ast.Starred):
                bound[name] = (value, self)
        bound |= {item.arg: (item.value, self) for item in call.keywords if item.arg}
        defaults = [*zip(reversed(names), reversed(node.args.defaults), strict=False)]
        defaults += [
            (item.arg, value)
            for item, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            if value is not None
        ]
        inner = Scope(function, node, bound)
        for name, value in defaults:
            inner.bound.setdefault(name, (value, inner))
        return inner


@functools.cache
def scope_of(function: FunctionType) -> Scope:
    """The scope of a function nobody in particular calls. Raises LookupError for one without source."""
    node = node_of(function)
    if node is None:
        raise LookupError(function.__qualname__)
    return Scope(function, node)


Assignment = tuple[str, ast.expr]
"""How a name gets its value (`is`, `element of`, `item N of`, `typed`) and the expression."""


@functools.cache
def _assignments(node: FunctionNode) -> dict[str, list[Assignment]]:
    found: dict[str, list[Assignment]] = {}

    def target(where: ast.expr, how: str, value: ast.expr) -> None:
        if isinstance(where, ast.Name):
            found.setdefault(where.id, []).append((how, value))
        elif isinstance(where, ast.Tuple):
            for index, part in enumerate(where.elts):
                if isinstance(value, ast.Tuple) and how == "is" and len(value.elts) == len(where.elts):
                    target(part, "is", value.elts[index])
                else:
                    target(part, f"{index}" if how == "is" else f"{index} {how}", value)

    for item in own_nodes(node):
        if isinstance(item, ast.Assign):
            for where in item.targets:
                target(where, "is", item.value)
        elif isinstance(item, ast.AnnAssign):
            target(item.target, "typed", item.annotation)
        elif isinstance(item, ast.NamedExpr):
            target(item.target, "is", item.value)
        elif isinstance(item, ast.For | ast.AsyncFor | ast.comprehension):
            target(item.target, "element", item.iter)
        elif isinstance(item, ast.withitem) and item.optional_vars is not None:
            target(item.optional_vars, "entered", item.context_expr)
    return found
