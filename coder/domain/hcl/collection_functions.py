"""Terraform's functions on lists, sets and maps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from coder.domain.hcl import values as v
from coder.domain.hcl.bounds import require_size
from coder.domain.hcl.text_functions import characters
from coder.domain.hcl.values import EvaluationError, SetValue, TableFunction, Value, to_number, to_text

_MAX_PRODUCT = 10_000
"""Ours: maximum combinations of setproduct."""


def _removed_function(name: str, instead: str) -> Value:
    raise EvaluationError(f'the "{name}" function was deprecated in Terraform v0.12 and is gone; use {instead}')


def _flatten(items: list[Value]) -> list[Value]:
    return [x for item in items for x in (_flatten(item) if isinstance(item, list) else [item])]


def _coalesce(*items: Value) -> Value:
    for item in items:
        if item is not None and item != "":
            return v.unify([item, *items])[0]
    raise EvaluationError("no non-null, non-empty-string arguments")


def _coalescelist(*lists: Value) -> Value:
    for item in lists:
        if item:
            return item
    raise EvaluationError("no non-null, non-empty arguments")


def _element(items: list[Value], position: Value) -> Value:
    if not items:
        raise EvaluationError("cannot use element function with an empty list")
    if to_number(position) < 0:
        raise EvaluationError("cannot use element function with a negative index")
    return items[int(to_number(position)) % len(items)]


def _lookup(of: Mapping[str, Value], key: Value, *default: Value) -> Value:
    name = to_text(key)
    if name in of:
        return of[name]
    if default:
        return default[0]
    raise EvaluationError(f'the given object has no attribute "{name}"')


def _merge(*maps: Mapping[str, Value] | None) -> dict[str, Value]:
    results: dict[str, Value] = {}
    for item in maps:
        results.update(item or {})
    return results


def _one(items: Sequence[Value]) -> Value:
    if len(items) > 1:
        raise EvaluationError("must be a list, set, or tuple value with either zero or one elements")
    return items[0] if items else None


def _index(items: list[Value], value: Value) -> int:
    if value not in items:
        raise EvaluationError("item not found")
    return items.index(value)


def _length(of: str | Sequence[Value] | Mapping[str, Value] | None) -> int:
    if of is None:
        raise EvaluationError("argument must not be null")
    return len(characters(of) if isinstance(of, str) else of)


def _sets(combine: Callable[[list[Value], list[Value]], list[Value]], sets: tuple[Sequence[Value], ...]) -> SetValue:
    members = iter(v.unify([item for element in sets for item in element]))
    result, *others = [[next(members) for _ in item] for item in sets]
    for entry in others:
        result = combine(result, entry)
    return SetValue.of(result)


def _found_in(items: list[Value], others: list[Value], *, wanted: bool) -> list[Value]:
    """Return the items that are in `others`, or those that are not."""
    known = set(map(v.identity, others))
    return [item for item in items if (v.identity(item) in known) is wanted]


def _setproduct(*sets: Sequence[Value]) -> list[list[Value]]:
    combinations = math.prod(len(item) for item in sets)
    if combinations > _MAX_PRODUCT:
        raise EvaluationError(f"more than {_MAX_PRODUCT} combinations")
    require_size(combinations * len(sets))
    return [list(item) for item in itertools.product(*sets)]


def _transpose(of: Mapping[str, list[str]]) -> dict[str, list[str]]:
    results: dict[str, list[str]] = {}
    for key in sorted(of):
        for item in of[key]:
            results.setdefault(item, []).append(key)
    return results


def _matchkeys(items: list[Value], keys: list[Value], search_keys: list[Value]) -> list[Value]:
    searched = set(map(v.identity, search_keys))
    return [item for item, key in zip(items, keys, strict=True) if v.identity(key) in searched]


def _reversed(items: Sequence[Value]) -> list[Value]:
    return list(items)[::-1]


def _chunks(items: list[Value], size: int) -> list[list[Value]]:
    return [items[i : i + size] for i in range(0, len(items), size)] if size else [items]


def _slice(items: list[Value], start: int, end: int) -> list[Value]:
    if not 0 <= start <= end <= len(items):
        raise EvaluationError("start and end index must be within the list, in this order")
    return items[start:end]


def _map(of: Value) -> Value:
    if not isinstance(of, dict):
        return of
    return dict(zip(of, v.unify(list(of.values())), strict=True))


_keys: Callable[[Iterable[str]], list[str]] = sorted

COLLECTION_FUNCTIONS: dict[str, TableFunction] = {
    "alltrue": lambda items: all(v.to_bool(item) for item in items),
    "anytrue": lambda items: any(v.to_bool(item) for item in items),
    "chunklist": lambda items, n: _chunks(items, int(n)),
    "coalesce": _coalesce,
    "coalescelist": _coalescelist,
    "compact": lambda items: [item for item in items if item not in (None, "")],
    "concat": lambda *lists: [x for item in lists for x in item],
    "contains": lambda items, value: value in list(items),
    "distinct": lambda items: v.distinct(v.unify(list(items))),
    "element": _element,
    "flatten": _flatten,
    "index": _index,
    "issensitive": lambda _value: False,
    "keys": _keys,
    "length": _length,
    "list": lambda *_items: _removed_function("list", "tolist([ ... ])"),
    "map": lambda *_items: _removed_function("map", "tomap({ ... })"),
    "ephemeralasnull": lambda value: value,  # nothing rendered here is ephemeral
    "lookup": _lookup,
    "matchkeys": _matchkeys,
    "merge": _merge,
    "nonsensitive": lambda value: value,
    "one": _one,
    "reverse": _reversed,
    "sensitive": lambda value: value,
    "setintersection": lambda *s: _sets(lambda a, b: _found_in(a, b, wanted=True), s),
    "setproduct": _setproduct,
    "setsubtract": lambda *s: _sets(lambda a, b: _found_in(a, b, wanted=False), s),
    "setunion": lambda *s: _sets(lambda a, b: a + b, s),
    "slice": lambda items, start, end: _slice(items, int(start), int(end)),
    "sort": lambda items: sorted(to_text(item) for item in items),
    "tolist": lambda items: None if items is None else v.unify(list(items)),
    "tomap": _map,
    "toset": lambda items: None if items is None else SetValue.of(v.unify(list(items))),
    "transpose": _transpose,
    "values": lambda of: [of[key] for key in sorted(of)],
    "zipmap": lambda keys, items: dict(zip((to_text(key) for key in keys), items, strict=True)),
}
