"""Type constraints of variables: conversion of a value to its declared type, with defaults of optional attributes.

The constraint is read from the expression; `any` and an invalid constraint change nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from coder.domain.hcl import tree
from coder.domain.hcl.values import (
    EvaluationError,
    Namespace,
    SetValue,
    Value,
    is_unknown,
    to_bool,
    to_number,
    to_text,
    type_name,
    unify,
)

Evaluate = Callable[[tree.Expression], Value]
_PRIMITIVES: dict[str, Callable[[Value], Value]] = {"string": to_text, "number": to_number, "bool": to_bool}
_BARE = frozenset({"list", "set", "map"})
"""Types that may be written without an element type, which means any."""


def convert(value: Value, kind: tree.Expression | None, evaluate: Evaluate) -> Value:
    """Convert a value to a type; `evaluate` evaluates defaults. Raises EvaluationError if the value cannot be
    converted."""
    if value is None or is_unknown(value) or isinstance(value, Namespace):
        return value
    match kind:
        case tree.Variable(name=name) if name in _PRIMITIVES:
            return _PRIMITIVES[name](value)
        case tree.Variable(name=name) if name in _BARE:
            return _collection(name, value, None, evaluate)
        case tree.FunctionCall(name=name, arguments=(element,)) if name in _BARE:
            return _collection(name, value, element, evaluate)
        case tree.FunctionCall(name="object", arguments=(tree.Object() as shape,)):
            return _object(value, shape, evaluate)
        case tree.FunctionCall(name="tuple", arguments=(tree.Tuple(items=kinds),)):
            if not isinstance(value, list) or len(value) != len(kinds):
                raise EvaluationError(f"a tuple of {len(kinds)} elements is required")
            return [convert(item, element, evaluate) for item, element in zip(value, kinds, strict=True)]
    return value


def _collection(name: str, value: Value, element: tree.Expression | None, evaluate: Evaluate) -> Value:
    if not isinstance(value, dict if name == "map" else list):
        raise EvaluationError(f"a {name} is required, not {type_name(value)}")
    items = list(value.values() if isinstance(value, dict) else value)
    items = [convert(item, element, evaluate) for item in items]
    if element is None or element == tree.Variable(element.span, "any"):
        items = unify(items)
    if name == "map":
        return dict(zip(value, items, strict=True))
    return SetValue.of(items) if name == "set" else items


def _object(value: Value, shape: tree.Object, evaluate: Evaluate) -> Value:
    if not isinstance(value, dict):
        raise EvaluationError(f"an object is required, not {type_name(value)}")
    results: dict[str, Value] = {}
    for key, kind in shape.items:
        name = key.name if isinstance(key, tree.Variable) else to_text(evaluate(key))
        optional = isinstance(kind, tree.FunctionCall) and kind.name == "optional"
        inner, default = _optional(kind) if isinstance(kind, tree.FunctionCall) and optional else (kind, None)
        item = value.get(name)
        if name not in value and not optional:
            raise EvaluationError(f'attribute "{name}" is required')
        if item is None and default is not None:
            item = evaluate(default)
        results[name] = convert(item, inner, evaluate)
    return results


def _optional(call: tree.FunctionCall) -> tuple[tree.Expression | None, tree.Expression | None]:
    kind, default = (*call.arguments, None, None)[:2]
    return kind, default
