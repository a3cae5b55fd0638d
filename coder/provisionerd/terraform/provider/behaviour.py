"""Behaviour of schema tables: validate, plan, apply, read back, upgrade.

Imitates the older provider SDK that upstream's provider is built on, because its behaviour is visible in plans, in
states and in templates: defaults are applied at plan, nested blocks get zero values once applied, null and zero compare
equal, every attribute forces a new resource. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from coder.provisionerd.terraform.provider.diagnostics import Diagnostic, Path, error, warning
from coder.provisionerd.terraform.provider.readers import checked_blocks
from coder.provisionerd.terraform.provider.schema import BOOL, NUMBER, STRING, Attribute, Block, Body, Schema
from coder.provisionerd.terraform.provider.values import (
    UNKNOWN,
    Value,
    ValueObject,
    integer_fault,
    is_set,
    is_wholly_known,
)


# --- validate
def validate(body: Body, config: ValueObject) -> list[Diagnostic]:
    """Validate all configured values; unknown values are left for later."""
    return list(_validate_body(body, config, config, (), ()))


def _validate_body(body: Body, config: ValueObject, root: Value, keys: Path, path: Path) -> Iterator[Diagnostic]:
    for name in sorted(body):
        entry = body[name]
        value = config.get(name)
        if not is_set(value):
            continue
        yield from _validate_entry(entry, value, root, (*keys, name), (*path, name))


def _validate_entry(
    entry: Attribute | Block, value: Value, root: Value, keys: Path, path: Path
) -> Iterator[Diagnostic]:
    key = ".".join(map(str, keys))
    for other in entry.conflicts:
        conflicting = _look_up(root, other)
        if is_set(conflicting) and conflicting is not UNKNOWN:
            yield error("Conflicting configuration arguments", f'"{key}": conflicts with {other}', path)
            return
    if not is_wholly_known(value):
        return
    if isinstance(entry, Block):
        yield from _validate_blocks(entry, checked_blocks(value), root, keys, path)
    else:
        for finding in _check_value(entry, value, key):
            yield error(finding, "", path) if isinstance(finding, str) else finding.at(path)
    if entry.deprecated:
        yield warning("Argument is deprecated", entry.deprecated, path)


def _check_value(entry: Attribute, value: Value, key: str) -> Iterator[str | Diagnostic]:
    # Numbers of this provider are integers; Terraform's own type system does not express that.
    fault = integer_fault(value) if entry.type == NUMBER else ""
    if fault:
        yield f"{key}: {fault}"
    elif entry.check is not None:
        yield from entry.check(value, key)


def _validate_blocks(
    entry: Block, items: list[ValueObject], root: Value, keys: Path, path: Path
) -> Iterator[Diagnostic]:
    for index, item in enumerate(items):
        inner = _validate_body(entry.body, item, root, (*keys, index), (*path, index))
        if entry.nesting == "list":
            yield from inner
        else:
            # Positions in a set mean nothing in this protocol: refer to the block.
            yield from (diagnostic.at(path) for diagnostic in inner)


def _look_up(root: Value, dotted: str) -> Value:
    value = root
    for step in dotted.split("."):
        if isinstance(value, list):
            value = value[int(step)] if int(step) < len(value) else None
        elif isinstance(value, dict):
            value = value.get(step)
        else:
            return value if value is UNKNOWN else None
    return value


# --- plan
def plan(body: Body, prior: ValueObject | None, proposed: ValueObject) -> tuple[ValueObject, list[Path]]:
    """Return (planned state, paths that force a replacement). `prior` None means create."""
    if prior is None:
        return _planned_body(body, proposed, top=True), []
    planned: ValueObject = {}
    for name, entry in body.items():
        old, new = prior.get(name), proposed.get(name)
        if entry.computed and not is_set(new):
            planned[name] = old
            continue
        value = _planned_entry(entry, new, top=True)
        planned[name] = old if same(entry, old, value) else value
    replaced = [
        path for name, entry in body.items() for path in _changed_paths(entry, prior.get(name), planned[name], (name,))
    ]
    return planned, replaced


def _changed_paths(entry: Attribute | Block, old: Value, new: Value, path: Path) -> Iterator[Path]:
    """Yield the paths where two values differ, as deep as a path can refer (not into sets)."""
    if same(entry, old, new):
        return
    lists = isinstance(old, list) and isinstance(new, list) and len(old) == len(new)
    if isinstance(entry, Block) and entry.nesting == "list" and lists:
        for index, (left, right) in enumerate(zip(checked_blocks(old), checked_blocks(new), strict=True)):
            for name, inner in entry.body.items():
                yield from _changed_paths(inner, left.get(name), right.get(name), (*path, index, name))
    else:
        yield path


def _planned_body(body: Body, value: ValueObject, *, top: bool) -> ValueObject:
    return {name: _planned_entry(entry, value.get(name), top=top) for name, entry in body.items()}


def _planned_entry(entry: Attribute | Block, value: Value, *, top: bool) -> Value:
    if isinstance(entry, Block):
        return _planned_blocks(entry, value, top=top)
    if value is None:
        if entry.default is not None:
            return entry.default
        return UNKNOWN if entry.computed else None
    if isinstance(value, dict) and not is_wholly_known(value):
        return UNKNOWN
    return _without_nulls(value)


def _without_nulls(value: Value) -> Value:
    """Return a map without its null elements; null for an empty map. The older SDK stores maps flat, where neither
    exists. Other values are unchanged."""
    if not isinstance(value, dict):
        return value
    return {key: item for key, item in value.items() if item is not None} or None


def _planned_blocks(entry: Block, value: Value, *, top: bool) -> Value:
    if value is UNKNOWN:
        return UNKNOWN
    if not value:
        if entry.computed:
            return UNKNOWN
        return [] if top else None
    return [_planned_item(entry.body, item) for item in checked_blocks(value)]


def _planned_item(body: Body, item: ValueObject) -> ValueObject:
    planned = _planned_body(body, item, top=False)
    if any(is_set(value) for value in planned.values()):
        # Omitted blocks are empty when another value is set; in an empty block everything is null.
        for name, entry in body.items():
            if isinstance(entry, Block) and planned[name] is None:
                planned[name] = []
    return planned


def same(entry: Attribute | Block, left: Value, right: Value) -> bool:
    """Return whether two values are equal to the older SDK, which cannot distinguish null from zero."""
    if left is UNKNOWN or right is UNKNOWN:
        return left is right
    if isinstance(entry, Attribute):
        return bool(left == right) or (not left and not right)
    lefts, rights = checked_blocks(left), checked_blocks(right)
    if len(lefts) != len(rights):
        return False
    if entry.nesting == "list":
        return all(_same_body(entry.body, a, b) for a, b in zip(lefts, rights, strict=True))
    for item in lefts:
        match = next((other for other in rights if _same_body(entry.body, item, other)), None)
        if match is None:
            return False
        rights.remove(match)
    return True


def _same_body(body: Body, left: ValueObject, right: ValueObject) -> bool:
    return all(same(entry, left.get(name), right.get(name)) for name, entry in body.items())


# --- apply and read
def applied(body: Body, planned: ValueObject) -> ValueObject:
    """Return the state after applying a plan: nothing unknown, zero values inside nested blocks."""
    state: ValueObject = {}
    for name, entry in body.items():
        value = planned.get(name)
        if isinstance(entry, Block):
            state[name] = [] if value is UNKNOWN or value is None else _applied_blocks(entry, value)
        else:
            state[name] = None if value is UNKNOWN else value
    return state


def _applied_blocks(entry: Block, value: Value) -> Value:
    if value is UNKNOWN or value is None:
        return None
    return [
        {name: _applied_nested(inner, item.get(name)) for name, inner in entry.body.items()}
        for item in checked_blocks(value)
    ]


def _applied_nested(entry: Attribute | Block, value: Value) -> Value:
    if isinstance(entry, Block):
        return _applied_blocks(entry, value)
    return zero(entry) if value is None or value is UNKNOWN else value


_ZEROES: dict[str, Value] = {str(STRING): "", str(NUMBER): 0, str(BOOL): False}


def zero(attribute: Attribute) -> Value:
    """Return Go's zero value of the attribute's type; None for collections."""
    return _ZEROES.get(str(attribute.type))


def data_state(schema: Schema, config: ValueObject) -> ValueObject:
    """Return a data source's state before its own read: defaults set, empty strings removed, zero values inside
    blocks."""
    state: ValueObject = {}
    for name, entry in schema.body.items():
        value = config.get(name)
        if isinstance(entry, Block):
            planned_blocks = _planned_blocks(entry, value, top=True) if value else None
            state[name] = (
                _data_blocks(entry, checked_blocks(planned_blocks)) if planned_blocks else schema.unset_blocks.get(name)
            )
        elif value is None or value == "":
            state[name] = entry.default
        else:
            state[name] = _without_nulls(value)
    return state


def _data_blocks(entry: Block, items: list[ValueObject]) -> list[Value]:
    result: list[Value] = []
    for item in items:
        inner: ValueObject = {}
        for name, nested in entry.body.items():
            if isinstance(nested, Block):
                inner[name] = _data_blocks(nested, checked_blocks(item.get(name)))
            else:
                inner[name] = _applied_nested(nested, item.get(name))
        result.append(inner)
    return result


def upgraded(body: Body, stored: Mapping[str, Value]) -> ValueObject:
    """Return a stored state in the current schema: removed attributes are dropped, new ones are null.

    Maps lose null elements, which former versions of this provider stored: a plan would replace the resource.
    """
    state: ValueObject = {}
    for name, entry in body.items():
        value = stored.get(name)
        if isinstance(entry, Block) and value:
            state[name] = [upgraded(entry.body, item) for item in checked_blocks(value)]
        else:
            state[name] = _without_nulls(value)
    return state
