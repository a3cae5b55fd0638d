"""Validation of parameter values, with the texts templates expect: one set of rules for the Terraform provider and for
forms that are rendered without Terraform. Pure.

Regular expressions are RE2, as the imitated provider uses Go's; `re` accepts patterns Go refuses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypedDict

from coder.domain.foundation.go_url import go_quote

Path = tuple[str, ...]


class Option(TypedDict):
    """Option in the provider's form."""

    name: str
    value: str


class Validation(TypedDict):
    """Validation block in the provider's form."""

    min: int
    max: int
    min_disabled: bool
    max_disabled: bool
    monotonic: str
    regex: str
    error: str


class Body(TypedDict):
    """Parameter in the provider's form."""

    type: str
    form_type: str
    option: Sequence[Option] | None
    validation: Sequence[Validation] | None


MAX_OPTIONS = 4096
"""Ours: options of a parameter; as many as a message of a provisioner daemon may have (`rpc/request_limits.py`)."""


@dataclass(frozen=True, slots=True)
class Complaint:
    summary: str
    detail: str
    path: Path = ()
    """Attribute at fault; empty for the parameter as a whole."""


TYPES = ("string", "number", "bool", "list(string)")
FORM_TYPES = (
    "radio",
    "slider",
    "input",
    "dropdown",
    "checkbox",
    "switch",
    "multi-select",
    "tag-select",
    "textarea",
    "error",
)

ALLOWED_FORM_TYPES: dict[tuple[str, bool], tuple[str, ...]] = {
    ("string", True): ("radio", "dropdown"),
    ("string", False): ("input", "textarea"),
    ("number", True): ("radio", "dropdown"),
    ("number", False): ("input", "slider"),
    ("bool", True): ("radio", "dropdown"),
    ("bool", False): ("checkbox", "switch"),
    ("list(string)", True): ("radio", "multi-select"),
    ("list(string)", False): ("tag-select",),
}
"""(type, has options) -> form types; the first is the default."""

_GO_BOOLS = frozenset({"1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"})
_GO_FLOAT = re.compile(
    r"[+-]?(?:(?:\d++(?:_++\d++)*+|(?:\d[\d_]*+)?\.\d++|\d++\.)(?:e[+-]?\d++)?|inf|infinity|nan"
    r"|0x[0-9a-f]*+(?:\.[0-9a-f]*+)?p[+-]?\d++)",
    re.IGNORECASE,
)
"""Possessive quantifiers prevent backtracking: with them off, four thousand digits from a user took a third of a
second."""
_GO_INT = re.compile(r"[+-]?\d{1,30}", re.ASCII)


def choose_form_type(kind: str, has_options: bool, requested: str) -> tuple[str, Complaint | None]:
    """Return the form type to use, and an error when the requested one is not allowed."""
    allowed = ALLOWED_FORM_TYPES[kind, has_options]
    if not requested:
        return allowed[0], None
    if requested in allowed:
        return requested, None
    allowed_otherwise = requested in ALLOWED_FORM_TYPES[kind, not has_options]
    when = f" when options {'exist' if has_options else 'do not exist'}" if allowed_otherwise else ""
    detail = (
        f'"form_type" attribute="{requested}" is not supported for "type"="{kind}"{when}, '
        f"choose one of [{' '.join(allowed)}]"
    )
    return requested, Complaint("Invalid form_type for parameter", detail, ("form_type",))


def too_many_options(count: int) -> str:
    """Return why a parameter may not have so many options; "" when it may."""
    return f"A parameter has at most {MAX_OPTIONS} options, and this one has {count}." if count > MAX_OPTIONS else ""


def check_options(parameter: Body) -> Iterator[Complaint]:
    """Check that names and values are unique, and that values have the parameter's type."""
    names: set[str] = set()
    values: set[str] = set()
    # Each option of a multi-select is one element of the resulting list.
    kind = "string" if parameter["form_type"] == "multi-select" else parameter["type"]
    if excess := too_many_options(len(parameter["option"] or [])):
        yield Complaint("Too many options.", excess)
        return
    for option in parameter["option"] or []:
        name, value = option["name"], option["value"]
        if name in names:
            yield Complaint(
                "Option names must be unique.", f"multiple options found with the same name {go_quote(name)}"
            )
            return
        if value in values:
            yield Complaint(
                "Option values must be unique.", f"multiple options found with the same value {go_quote(value)}"
            )
            return
        names.add(name)
        values.add(value)
        reason = type_problem(kind, value)
        if reason:
            yield Complaint(
                f"Option {go_quote(name)} with value={go_quote(value)} is not of type {go_quote(kind)}", reason
            )


def type_problem(kind: str, value: str) -> str:
    """Return why a text does not have a parameter type; "" when it has."""
    if kind == "number" and not _GO_FLOAT.fullmatch(value):
        return f"{go_quote(value)} is not a number"
    if kind == "bool" and value not in _GO_BOOLS:
        return f"{go_quote(value)} is not a bool"
    if kind == "list(string)" and string_list(value) is None:
        return f"value {go_quote(value)} is not a valid list of strings"
    return ""


def string_list(value: str) -> list[str] | None:
    """Return the strings of a JSON list (null counts as empty), or None for anything else."""
    try:
        decoded = json.loads(value)
    except ValueError:
        return None
    if decoded is None:
        return []
    if not isinstance(decoded, list) or any(item is not None and not isinstance(item, str) for item in decoded):
        return None
    return [item or "" for item in decoded]


def check_value(parameter: Body, value: str, previous: str | None, path: Path) -> Iterator[Complaint]:
    """Check options, then the validation block, then the type; stop at the first error."""
    name = "Default value" if path else "Value"
    yield from _first(
        _check_membership(parameter, value, name, path),
        _check_validation(parameter, value, previous, name, path),
        _check_type(parameter["type"], value),
    )


def _first(*checks: Iterator[Complaint]) -> Iterator[Complaint]:
    for check in checks:
        results = list(check)
        if results:
            yield from results
            return


def _check_membership(parameter: Body, value: str, name: str, path: Path) -> Iterator[Complaint]:
    options = [option["value"] for option in parameter["option"] or []]
    if not options:
        return
    if parameter["type"] == "list(string)" and parameter["form_type"] == "multi-select":
        chosen_values = string_list(value)
        if chosen_values is None:
            summary = "When using list(string) type, value must be a json encoded list of strings"
            yield Complaint(summary, f"value {go_quote(value)} is not a valid list of strings", path)
            return
        missing = [item for item in chosen_values if item not in options]
        if missing:
            yield Complaint(
                f"{name}s must be a valid option",
                f"{name} {go_quote(value)} is not a valid option, "
                f"values {go_quote(', '.join(missing))} are missing from the options",
                path,
            )
    elif value not in options:
        detail = f"the value {go_quote(value)} must be defined as one of options"
        yield Complaint(f"{name} must be a valid option", detail, path)


def _check_validation(parameter: Body, value: str, previous: str | None, name: str, path: Path) -> Iterator[Complaint]:
    for validation in parameter["validation"] or []:
        reason = validation_problem(validation, parameter["type"], value, previous)
        if reason:
            yield Complaint(f"Invalid parameter {name.lower()} according to 'validation' block", reason, path)


def _check_type(kind: str, value: str) -> Iterator[Complaint]:
    reason = type_problem(kind, value)
    if reason:
        yield Complaint(f"Parameter value is not of type {go_quote(kind)}", reason)


def validation_problem(validation: Validation, kind: str, value: str, previous: str | None) -> str:
    """Return why a validation block rejects a value; "" when it accepts it."""
    if kind != "number":
        for bound, is_disabled in (("min", validation["min_disabled"]), ("max", validation["max_disabled"])):
            if not is_disabled:
                return f"a {bound} cannot be specified for a {kind} type"
        if validation["monotonic"]:
            return f"monotonic validation can only be specified for number types, not {kind} types"
    if kind != "string" and validation["regex"]:
        return f"a regex cannot be specified for a {kind} type"
    if kind == "bool":
        return "" if value in {"true", "false"} else 'boolean value can be either "true" or "false"'
    if kind == "string":
        return _regex_problem(validation, value)
    if kind == "number":
        return _number_problem(validation, value, previous)
    return type_problem(kind, value)


def _regex_problem(validation: Validation, value: str) -> str:
    import re2

    pattern = validation["regex"]
    if not pattern:
        return ""
    if not validation["error"]:
        return "an error must be specified with a regex validation"
    options = re2.Options()
    options.log_errors = False
    try:
        matched = re2.compile(pattern, options).search(value)
    except re2.error as problem:
        return f"compile regex <nil>: error parsing regexp: {_go_regexp_sentence(problem.args[0].decode())}"
    if matched:
        return ""
    return f"{validation['error']} (value {go_quote(value)} does not match {go_quote(pattern)})"


_GO_SENTENCES = {
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "no argument for repetition operator": "missing argument to repetition operator",
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
}


def _go_regexp_sentence(problem: str) -> str:
    """Translate the library's error into Go's words: `word: location` -> "Go's words: `location`"."""
    word, _, location = problem.partition(": ")
    return f"{_GO_SENTENCES.get(word, word)}: `{location}`"


def _number_problem(validation: Validation, value: str, previous: str | None) -> str:
    if not _GO_INT.fullmatch(value):
        return _custom(validation, value) or f"value {go_quote(value)} is not a number"
    number = int(value)
    if not validation["min_disabled"] and number < validation["min"]:
        return _custom(validation, value) or f"value {number} is less than the minimum {validation['min']}"
    if not validation["max_disabled"] and number > validation["max"]:
        return _custom(validation, value) or f"value {number} is more than the maximum {validation['max']}"
    return monotonic_problem(validation["monotonic"], value, previous)


def _custom(validation: Validation, value: str) -> str:
    text = validation["error"]
    for name, replacement in (("min", validation["min"]), ("max", validation["max"]), ("value", value)):
        text = text.replace("{" + name + "}", str(replacement))
    return text


def monotonic_problem(direction: str, value: str, previous: str | None) -> str:
    """Return why a number cannot follow the previous one; "" when it can, or when one of them is no integer."""
    if direction not in {"", "increasing", "decreasing"}:
        return 'number monotonicity can be either "increasing" or "decreasing"'
    if not direction or previous is None or not _GO_INT.fullmatch(previous) or not _GO_INT.fullmatch(value):
        return ""
    number, before = int(value), int(previous)
    if direction == "increasing" and number < before:
        return f"parameter value '{number}' must be equal or greater than previous value: {before}"
    if direction == "decreasing" and number > before:
        return f"parameter value '{number}' must be equal or lower than previous value: {before}"
    return ""
