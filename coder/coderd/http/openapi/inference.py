"""Of what type an expression in a handler is: enough of a type checker to know what `reply(...)` is given.

It trusts annotations and never runs the code. What it cannot tell is `UNKNOWN`; then the document is silent there.
"""

from __future__ import annotations

import ast
import functools
import inspect
import types
import typing
from dataclasses import dataclass
from typing import Any

from coder.coderd.http.openapi.sources import MISSING, Scope, module_names

UNKNOWN: Any = object()
_DEPTH = 12
"Ours: how far an expression is followed through local variables and callers."


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list whose elements were inferred."""

    item: Any


@dataclass(frozen=True, slots=True)
class MapOf:
    """An object with any keys."""

    value: Any


@dataclass(frozen=True, slots=True)
class Shape:
    """A dict written out with its keys."""

    fields: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    options: tuple[Any, ...]


def either(options: list[Any]) -> Any:
    """The union of inferred types; None among them means null."""
    distinct = [item for index, item in enumerate(options) if item is not UNKNOWN and item not in options[:index]]
    if not distinct:
        return UNKNOWN
    return distinct[0] if len(distinct) == 1 else AnyOf(tuple(distinct))


def annotation(text: Any, module: str) -> Any:
    """What an annotation means in its module."""
    return _meaning(text, module) if isinstance(text, str) else text


@functools.cache
def _meaning(text: str, module: str) -> Any:
    try:
        return eval(text, dict(module_names(module)))  # noqa: S307 - our own source
    except (NameError, AttributeError, TypeError, SyntaxError):
        return UNKNOWN


def returned_by(function: Any) -> Any:
    """The annotated result of a function or method; of a coroutine, what awaiting it gives."""
    function = inspect.unwrap(function) if not isinstance(function, type) else function
    notes = getattr(function, "__annotations__", {})
    if "return" not in notes:
        return UNKNOWN
    return annotation(notes["return"], function.__module__)


def attribute_of(kind: Any, name: str) -> Any:
    """The type of an attribute of an instance of `kind`."""
    kind = without_none(kind)
    if isinstance(kind, Shape):
        return dict(kind.fields).get(name, UNKNOWN)
    kind = typing.get_origin(kind) or kind
    if not isinstance(kind, type):
        return UNKNOWN
    for owner in kind.__mro__:
        notes = inspect.get_annotations(owner) if owner is not object else {}
        if name in notes:
            return annotation(notes[name], owner.__module__)
        value = owner.__dict__.get(name)
        if isinstance(value, property):
            return returned_by(value.fget)
    return UNKNOWN


def without_none(kind: Any) -> Any:
    if isinstance(kind, AnyOf):
        return either([item for item in kind.options if item not in {None, types.NoneType}])
    if typing.get_origin(kind) in {typing.Union, types.UnionType}:
        rest = [item for item in typing.get_args(kind) if item is not types.NoneType]
        return rest[0] if len(rest) == 1 else AnyOf(tuple(rest))
    return kind


def element_of(kind: Any) -> Any:
    """What iterating over a value of this type gives."""
    kind = without_none(kind)
    if isinstance(kind, ListOf):
        return kind.item
    arguments = typing.get_args(kind)
    return arguments[0] if arguments else UNKNOWN


def _item(kind: Any, index: int) -> Any:
    kind = without_none(kind)
    arguments = typing.get_args(kind)
    if typing.get_origin(kind) is tuple and index < len(arguments):
        return arguments[index]
    return element_of(kind)


def infer(node: ast.AST, scope: Scope, depth: int = _DEPTH) -> Any:
    """The type of an expression; UNKNOWN where it cannot be told."""
    if depth <= 0:
        return UNKNOWN
    deeper = depth - 1
    match node:
        case ast.Await():
            return infer(node.value, scope, deeper)
        case ast.Constant():
            return None if node.value is None else type(node.value)
        case ast.JoinedStr():
            return str
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return bool
        case ast.IfExp():
            return either([infer(node.body, scope, deeper), infer(node.orelse, scope, deeper)])
        case ast.BoolOp():
            kinds = [infer(item, scope, deeper) for item in node.values]
            if isinstance(node.op, ast.Or):  # a falsy value that is not the last never comes out
                kinds = [*map(without_none, kinds[:-1]), kinds[-1]]
            return either(kinds)
        case ast.BinOp():
            return infer(node.left, scope, deeper)
        case ast.List() | ast.Tuple() | ast.Set():
            return ListOf(either([_listed(item, scope, deeper) for item in node.elts]))
        case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
            return ListOf(infer(node.elt, scope, deeper))
        case ast.DictComp():
            return MapOf(infer(node.value, scope, deeper))
        case ast.Dict():
            return _literal(node, scope, deeper)
        case ast.Name():
            return _named(node, scope, deeper)
        case ast.Attribute():
            return attribute_of(infer(node.value, scope, deeper), node.attr)
        case ast.Subscript():
            return _subscript(node, scope, deeper)
        case ast.Call():
            return _called(node, scope, deeper)
    return UNKNOWN


def _listed(item: ast.expr, scope: Scope, depth: int) -> Any:
    return element_of(infer(item.value, scope, depth)) if isinstance(item, ast.Starred) else infer(item, scope, depth)


def _literal(node: ast.Dict, scope: Scope, depth: int) -> Any:
    if all(isinstance(key, ast.Constant) for key in node.keys):
        return Shape(
            tuple(
                (str(key.value), infer(value, scope, depth))
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant)
            )
        )
    return MapOf(UNKNOWN)


def _subscript(node: ast.Subscript, scope: Scope, depth: int) -> Any:
    kind = without_none(infer(node.value, scope, depth))
    index = node.slice.value if isinstance(node.slice, ast.Constant) else None
    if isinstance(kind, Shape):
        return dict(kind.fields).get(str(index), UNKNOWN)
    if isinstance(kind, MapOf):
        return kind.value
    if isinstance(node.slice, ast.Slice):
        return kind
    if typing.get_origin(kind) is dict:
        return typing.get_args(kind)[1]
    return _item(kind, index if isinstance(index, int) else 0)


def _named(node: ast.Name, scope: Scope, depth: int) -> Any:
    if node.id in scope.bound:
        expression, outer = scope.bound[node.id]
        found = infer(expression, outer, depth)
        if found is not UNKNOWN:
            return found
    if node.id in scope.assigned:
        ways = scope.assigned[node.id]
        typed = [value for how, value in ways if how == "typed"]
        if typed:
            return annotation(ast.unparse(typed[0]), scope.module)
        return either([_assigned(how, value, scope, depth) for how, value in ways])
    if node.id in scope.parameters:
        note = scope.function.__annotations__.get(node.id, UNKNOWN)
        return annotation(note, scope.module)
    value = scope.look_up(node.id)
    return UNKNOWN if value is MISSING or inspect.isclass(value) or callable(value) else type(value)


def _assigned(how: str, value: ast.expr, scope: Scope, depth: int) -> Any:
    kind = infer(value, scope, depth)
    for word in reversed(how.split()):
        if word == "element":
            kind = element_of(kind)
        elif word.isdigit():
            kind = _item(kind, int(word))
        elif word == "entered":
            kind = element_of(kind) if typing.get_args(kind) else kind
    return kind


_CONTAINERS: dict[Any, Any] = {list: ListOf, sorted: ListOf, set: ListOf, tuple: ListOf, frozenset: ListOf}


def _called(node: ast.Call, scope: Scope, depth: int) -> Any:
    target = scope.resolve(node.func)
    if target is not MISSING:
        if target in _CONTAINERS and node.args:
            inner = infer(node.args[0], scope, depth)
            inner = dict if inner is UNKNOWN else inner
            return ListOf(element_of(inner))
        if target is dict:
            return infer(node.args[0], scope, depth) if node.args else MapOf(UNKNOWN)
        if inspect.isclass(target):
            return target
        if target in {anext, next, max, min} and node.args:
            return element_of(infer(node.args[0], scope, depth))
        return returned_by(target) if callable(target) else UNKNOWN
    if isinstance(node.func, ast.Attribute):
        return _method(node, node.func, scope, depth)
    return UNKNOWN


def _method(node: ast.Call, func: ast.Attribute, scope: Scope, depth: int) -> Any:
    if func.attr == "part" and node.args:
        found = scope.resolve(node.args[0])
        return found if inspect.isclass(found) else UNKNOWN
    if func.attr in {"read", "run"} and node.args:
        passed = scope.resolve(node.args[0])  # a store function in a transaction
        if passed is not MISSING and callable(passed):
            return returned_by(passed)
    method = method_of(func, scope, depth)
    if method is not None:
        return returned_by(method)
    base = without_none(infer(func.value, scope, depth))
    if func.attr in {"get", "pop"} and typing.get_origin(base) is dict:
        return typing.get_args(base)[1]
    if func.attr == "values" and typing.get_args(base):
        return ListOf(typing.get_args(base)[-1])
    if func.attr == "items" and len(typing.get_args(base)) == 2:
        return ListOf(types.GenericAlias(tuple, typing.get_args(base)))
    return UNKNOWN


def method_of(func: ast.Attribute, scope: Scope, depth: int = _DEPTH) -> Any:
    """The function behind `value.name(...)`, or None."""
    kind = without_none(infer(func.value, scope, depth))
    kind = typing.get_origin(kind) or kind
    found = inspect.getattr_static(kind, func.attr, None) if isinstance(kind, type) else None
    found = getattr(found, "__func__", found)
    return found if inspect.isfunction(found) else None
