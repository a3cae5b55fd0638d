"""Which refusals can come out of a function: it and all it calls are followed, `try` taken into account."""

from __future__ import annotations

import ast
import inspect
from types import FunctionType
from typing import Any

from coder.base.errors import CoderError
from coder.coderd.http.openapi.inference import AnyOf, annotation, infer, method_of, returned_by, without_none
from coder.coderd.http.openapi.sources import MISSING, Scope, node_of, scope_of
from coder.coderd.services.errors import Refusal

_OURS = ("coder.coderd.http.", "coder.coderd.services.", "coder.coderd.links.")
_known: dict[Any, frozenset[type[CoderError]]] = {}
_cut: set[Any] = set()
"Functions whose recursion was cut short while something below them was read."


def followed(function: Any) -> bool:
    """Whether a function is one of ours whose source says what it refuses."""
    module = getattr(function, "__globals__", {}).get("__name__", "")
    return inspect.isfunction(function) and module.startswith(_OURS)


def refusals_of(function: FunctionType, trail: frozenset[Any] = frozenset()) -> frozenset[type[CoderError]]:
    """The classes a call may raise."""
    if function in _known:
        return _known[function]
    if function in trail:
        _cut.add(function)
        return frozenset()
    node = node_of(function)
    if node is None:
        return frozenset()
    found = _block(node.body, scope_of(function), trail | {function})
    _cut.discard(function)
    if not _cut:  # below a recursion the answer is not whole
        _known[function] = found
    return found


def _block(nodes: list[ast.stmt], scope: Scope, trail: frozenset[Any]) -> frozenset[type[CoderError]]:
    found: frozenset[type[CoderError]] = frozenset()
    for node in nodes:
        found |= _visit(node, scope, trail)
    return found


def _visit(node: ast.AST, scope: Scope, trail: frozenset[Any]) -> frozenset[type[CoderError]]:
    if isinstance(node, ast.Try):
        return _attempt(node, scope, trail)
    found: frozenset[type[CoderError]] = frozenset()
    if isinstance(node, ast.Raise) and node.exc is not None:
        found |= _raised(node.exc, scope)
    elif isinstance(node, ast.Call):
        for target in targets(node, scope):
            found |= refusals_of(target, trail)
    for child in ast.iter_child_nodes(node):
        found |= _visit(child, scope, trail)
    return found


def _attempt(node: ast.Try, scope: Scope, trail: frozenset[Any]) -> frozenset[type[CoderError]]:
    inside = _block(node.body, scope, trail)
    rest = inside
    for handler in node.handlers:
        caught = _caught(handler, scope)
        again = any(isinstance(item, ast.Raise) and item.exc is None for item in ast.walk(handler))
        if not again:
            rest = frozenset(kind for kind in rest if not issubclass(kind, caught))
        rest |= _block(handler.body, scope, trail)
    return rest | _block(node.orelse, scope, trail) | _block(node.finalbody, scope, trail)


def _caught(handler: ast.ExceptHandler, scope: Scope) -> tuple[type[BaseException], ...]:
    if handler.type is None:
        return (BaseException,)
    nodes = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    found = [scope.resolve(node) for node in nodes]
    return tuple(kind for kind in found if inspect.isclass(kind) and issubclass(kind, BaseException))


def _raised(node: ast.expr, scope: Scope) -> frozenset[type[CoderError]]:
    what = scope.resolve(node.func if isinstance(node, ast.Call) else node)
    if what is MISSING:
        kind = without_none(infer(node, scope))
    elif inspect.isclass(what):
        kind = what
    else:
        kind = without_none(returned_by(what))
    options = kind.options if isinstance(kind, AnyOf) else (kind,)
    # "Some refusal" says nothing; what it can be was found where it was made.
    return frozenset(
        item
        for item in options
        if inspect.isclass(item)
        and item is not Refusal
        and (issubclass(item, Refusal) or (issubclass(item, CoderError) and hasattr(item, "statuses")))
    )


def targets(call: ast.Call, scope: Scope) -> list[FunctionType]:
    """Our functions a call may run: the one named, the method of an inferred class, and functions handed over."""
    found: list[Any] = []
    named = scope.resolve(call.func)
    if named is not MISSING:
        found.append(named.__init__ if inspect.isclass(named) and followed(named.__init__) else named)
    elif isinstance(call.func, ast.Attribute):
        found.append(method_of(call.func, scope))
    elif isinstance(call.func, ast.Name):
        found.append(_handed_in(call.func, scope))
    for value in (*call.args, *(item.value for item in call.keywords)):
        if isinstance(value, ast.Name | ast.Attribute):
            found.append(scope.resolve(value))
    return [item for item in found if followed(item)]


def _handed_in(name: ast.Name, scope: Scope) -> Any:
    note = scope.function.__annotations__.get(name.id)
    return annotation(note, scope.module) if note and inspect.isfunction(note) else None
