"""SCIM documents with canonical names, in every form that providers write (RFC 7643 section 2.1, RFC 7644 3.10).

Names of attributes are case-insensitive, may be qualified by the schema's URN, or be nested below it; booleans arrive
as words from some providers. Each document is parsed once: a change is acknowledged only if it was understood, and an
unclear value of `active` is refused. A provider must never receive a false confirmation that a user is locked out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from coder.base.json_types import Json, JsonObject

USER_SCHEMA = "urn:ietf:params:scim:schemas:core:2.0:User"

_USER = ("schemas", "id", "externalId", "meta", "userName", "name", "displayName", "emails", "active", "Operations")
_NAMES = {name.lower(): name for name in _USER}
_PARTS = {
    "name": {name.lower(): name for name in ("givenName", "familyName")},
    "emails": {name.lower(): name for name in ("value", "primary", "type")},
}
"""Attributes with sub-attributes, and the ones that are read."""
_OPERATION = {name: name for name in ("op", "path", "value")}
_SCHEMA = USER_SCHEMA.lower()
_TRUTH = {"true": True, "false": False}
_PATH_END = re.compile(r"[.\[]")


def canonical(document: Mapping[str, Json]) -> JsonObject:
    """Return a user, or a change of a user, by the names of RFC 7643; `active` is a boolean or None. Raises ValueError
    for a repeated attribute with different values, and for an `active` that is neither true nor false."""
    return _merged(_fields(document))


def patched(document: Mapping[str, Json]) -> JsonObject:
    """Return the fields a canonical PATCH sets: its operations (RFC 7644 section 3.5.2) after the fields that providers
    send directly. Raises ValueError as `canonical` does, and for an unknown operation on `active`."""
    result = {name: value for name, value in document.items() if name != "Operations"}
    operations = document.get("Operations")
    for item in operations if isinstance(operations, list) else ():
        if isinstance(item, Mapping):
            result |= _set_by(_named(item, _OPERATION))
    return result


def _fields(document: Mapping[str, Json]) -> Iterable[tuple[str, Json]]:
    """Return each attribute with its plain name, including those nested below the schema's URN."""
    for name, value in document.items():
        lowered = name.lower()
        if lowered == _SCHEMA:
            if not isinstance(value, Mapping | None):
                raise ValueError(f"{name} must be an object.")
            yield from _fields(value or {})
        else:
            plain = name[len(_SCHEMA) + 1 :] if lowered.startswith(f"{_SCHEMA}:") else name
            known = _NAMES.get(plain.lower(), plain)
            yield known, _read(known, value)


def _merged(fields: Iterable[tuple[str, Json]]) -> JsonObject:
    results: JsonObject = {}
    for name, value in fields:
        if name in results and results[name] != value:
            raise ValueError(f"{name} occurs twice.")
        results[name] = value
    return results


def _read(name: str, value: Json) -> Json:
    if name == "active":
        return None if value is None else _truth(value)
    parts = _PARTS.get(name)
    if parts is not None and isinstance(value, Mapping):
        return _named(value, parts)
    if parts is not None and isinstance(value, list):
        return [_email(_named(item, parts)) if isinstance(item, Mapping) else item for item in value]
    return value


def _named(item: Mapping[str, Json], names: Mapping[str, str]) -> JsonObject:
    return _merged((names.get(name.lower(), name), value) for name, value in item.items())


def _email(item: JsonObject) -> JsonObject:
    primary = item.get("primary")
    return {**item, "primary": _TRUTH.get(primary.lower(), False)} if isinstance(primary, str) else item


def _truth(value: Json) -> bool:
    result = _TRUTH.get(value.lower()) if isinstance(value, str) else value
    if not isinstance(result, bool):
        raise ValueError("active must be true or false.")
    return result


def _set_by(operation: Mapping[str, Json]) -> JsonObject:
    """Return the fields an operation sets. Empty for attributes that are not stored."""
    path, value = operation.get("path"), operation.get("value")
    kind = str(operation.get("op", "")).lower()
    if path is None or path == "":
        if kind == "remove":
            raise ValueError("A removal requires a path.")  # RFC 7644 section 3.5.2.2
        fields = canonical(value) if isinstance(value, Mapping) else {}
    elif isinstance(path, str):
        fields = _at(path.strip(), value, is_removal=kind == "remove")
    else:
        return {}
    sets = kind in {"add", "replace"}
    if "active" in fields and (not sets or fields["active"] is None):
        raise ValueError("active can only be replaced, by true or false.")
    return fields if sets else {}


def _at(path: str, value: Json, *, is_removal: bool) -> JsonObject:
    """Return the fields a path sets; sub-attributes of a path are not read. `active` has none: a longer path is an
    error."""
    lowered = path.lower()
    if lowered == _SCHEMA:
        return {"active": None} if is_removal else canonical({path: value})
    plain = lowered.removeprefix(f"{_SCHEMA}:")
    if _PATH_END.split(plain, maxsplit=1)[0].strip() != "active":
        return {} if _PATH_END.search(plain) or is_removal else canonical({path: value})
    if plain != "active":
        raise ValueError("active has no parts.")
    # A removal has no value that could be misunderstood.
    return {"active": None} if is_removal else canonical({path: value})


def select_attributes(resource: Mapping[str, Json], wanted: str, excluded: str) -> JsonObject:
    """Return a resource with the attributes named in `wanted`, or without those in `excluded`: comma-separated names,
    also of sub-attributes and qualified by the schema (RFC 7644 section 3.9). `id` and `schemas` always stay."""
    kept, left_out = _attribute_names(wanted), _attribute_names(excluded)
    result: JsonObject = {}
    for name, value in resource.items():
        lowered = name.lower()
        inner = _inner_names(kept if kept else left_out, lowered)
        if name in {"id", "schemas"} or lowered in kept:
            result[name] = value
        elif kept and inner:
            result[name] = _select_parts(value, inner, keeps=True)
        elif not kept and lowered not in left_out:
            result[name] = _select_parts(value, inner, keeps=False) if inner else value
    return result


def _attribute_names(text: str) -> set[str]:
    names = (item.strip().lower().removeprefix(f"{_SCHEMA}:") for item in text.split(","))
    return {name for name in names if name}


def _inner_names(names: Iterable[str], attribute: str) -> set[str]:
    """Return the sub-attributes of one attribute that are named."""
    return {name.removeprefix(f"{attribute}.") for name in names if name.startswith(f"{attribute}.")}


def _select_parts(value: Json, names: set[str], *, keeps: bool) -> Json:
    if isinstance(value, Mapping):
        return {name: part for name, part in value.items() if (name.lower() in names) is keeps}
    return [_select_parts(item, names, keeps=keeps) for item in value] if isinstance(value, list) else value
