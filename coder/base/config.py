"""Options and the sources of their values: default < file < environment < flag.

The only module that reads the environment. A role declares `Option`s, `resolve` returns each value with its source, and
the role's composition root builds one frozen dataclass of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from coder.base.duration import format_duration, parse_duration
from coder.base.errors import CoderError
from coder.base.json_types import Json
from coder.base.quoted import quoted

Source = Literal["default", "yaml", "env", "flag"]
Kind = Literal[
    "string", "int", "bool", "duration", "string-array", "allow-list", "url", "host:port", "regexp", "struct"
]

OptionValue = Json | timedelta
"""Value of an option, as its kind says: a text, number, bool, duration, tuple of texts, or structured JSON."""
LIST_KINDS = frozenset({"string-array", "allow-list"})
"""Kinds with several values: flags may be repeated, texts are split at commas."""


@dataclass(frozen=True, slots=True)
class Option:
    """Declaration of one setting."""

    name: str
    "Attribute name in the role's config dataclass."
    flag: str = ""
    "Long flag without dashes; empty when the command line has none."
    env: str = ""
    "Environment variable; empty when there is none."
    yaml: str = ""
    "Dotted path in the YAML file; empty when the file has none."
    kind: Kind = "string"
    default: OptionValue = ""
    help: str = ""
    group: str = ""
    short: str = ""
    hidden: bool = False
    secret: bool = False
    choices: tuple[str, ...] = ()
    least: timedelta = timedelta()
    "Smallest accepted duration."


@dataclass(frozen=True, slots=True)
class Resolved:
    """Values by option name, each with its source."""

    values: Mapping[str, OptionValue]
    sources: Mapping[str, Source]

    def __getitem__(self, name: str) -> OptionValue:
        return self.values[name]

    def text(self, name: str) -> str:
        """Return the value of an option that has one text."""
        return _to_string(self.values[name])

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the values of an option of a kind in `LIST_KINDS`."""
        return _to_list(self.values[name])

    def flag(self, name: str) -> bool:
        """Return the value of a bool."""
        return bool(self.values[name])


@dataclass(frozen=True, slots=True)
class Inputs:
    """Inputs of `resolve`. Flags hold raw texts (lists for repeated flags)."""

    flags: Mapping[str, OptionValue] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    file: Mapping[str, Json] = field(default_factory=dict)


def process_environment() -> Mapping[str, str]:
    """Return the environment of this process. All other code receives it as an argument."""
    return os.environ


def masked_arguments(arguments: Sequence[str], options: Sequence[Option]) -> list[str]:
    """Return a command line for display: values of secret options are stars."""
    flags = {f"--{option.flag}" for option in options if option.secret and option.flag}
    flags |= {f"-{option.short}" for option in options if option.secret and option.short}
    masked: list[str] = []
    hide_next = False
    for argument in arguments:
        flag, separator, _ = argument.partition("=")
        masked.append("***" if hide_next else f"{flag}=***" if separator and flag in flags else argument)
        hide_next = not hide_next and argument in flags
    return masked


def resolve(options: Sequence[Option], inputs: Inputs) -> Resolved:
    """Return each option's value. Raises CoderError `bad_option` naming the option and its source."""
    values: dict[str, OptionValue] = {}
    sources: dict[str, Source] = {}
    for option in options:
        raw, source = _pick(option, inputs)
        sources[option.name] = source
        values[option.name] = option.default if source == "default" else _convert(option, raw, source)
    return Resolved(values, sources)


def _pick(option: Option, inputs: Inputs) -> tuple[OptionValue, Source]:
    if option.flag and inputs.flags.get(option.flag) is not None:
        return inputs.flags[option.flag], "flag"
    if option.env and option.env in inputs.env:
        return inputs.env[option.env], "env"
    if option.yaml:
        from_file = _descend(inputs.file, option.yaml.split("."))
        if from_file is not None:
            return from_file, "yaml"
    return None, "default"


def _descend(node: Json, path: list[str]) -> Json:
    for key in path:
        if not isinstance(node, Mapping) or key not in node:
            return None
        node = node[key]
    return node


def _convert(option: Option, raw: OptionValue, source: Source) -> OptionValue:
    source_name = {"flag": f"--{option.flag}", "env": option.env, "yaml": option.yaml}.get(source, option.name)
    try:
        value = _CONVERTERS[option.kind](raw)
    except (ValueError, TypeError, CoderError) as error:
        has_login = isinstance(raw, str) and "://" in raw and "@" in raw
        masked = "***" if option.secret or has_login else quoted(raw)
        raise CoderError("bad_option", f"{source_name}: {masked} is not a valid {option.kind}", option.help) from error
    if option.secret and source == "env" and isinstance(value, str):
        value = value.rstrip("\r\n")  # of the file that a secret store made the variable from
    if isinstance(value, timedelta) and value < option.least:
        raise CoderError(
            "bad_option", f"{source_name}: {raw} is less than {format_duration(option.least)}", option.help
        )
    return _choice(option, value) if option.choices else value


def _choice(option: Option, value: OptionValue) -> str | tuple[str, ...]:
    """Return the value in the spelling of its choices; case is ignored."""
    known = {choice.lower(): choice for choice in option.choices}
    items = _to_list(value) if option.kind in LIST_KINDS else (str(value),)
    lowered = [item.lower() for item in items]
    if not known.keys() >= set(lowered):
        masked = ",".join(items)
        raise CoderError("bad_option", f"--{option.flag}: {quoted(masked)} is not one of {', '.join(option.choices)}")
    return tuple(known[item] for item in lowered) if option.kind in LIST_KINDS else known[lowered[0]]


def _to_bool(raw: OptionValue) -> bool:
    if isinstance(raw, bool):
        return raw
    text = str(raw).strip().lower()
    if text in {"1", "t", "true", "yes", "on"}:
        return True
    if text in {"0", "f", "false", "no", "off", ""}:
        return False
    raise ValueError(text)


def _to_list(raw: OptionValue) -> tuple[str, ...]:
    """Split a text at commas, or each text of a file's list. A null item is empty."""
    if isinstance(raw, str):
        return tuple(part.strip() for part in raw.split(",") if part.strip())
    if isinstance(raw, Mapping):
        raise TypeError("a mapping is no list")
    if not isinstance(raw, Sequence):
        raise TypeError("a list is required")
    return tuple(part for item in raw if item is not None for part in _to_list(_to_string(item)))


def _to_string(raw: OptionValue) -> str:
    """Return one value; a list or mapping of a file is none."""
    if isinstance(raw, list | dict):
        raise TypeError("a single value is required")
    return str(raw)


def _to_duration(raw: OptionValue) -> timedelta:
    return raw if isinstance(raw, timedelta) else parse_duration(str(raw))


def _to_text(kind: Kind) -> Callable[[OptionValue], str]:
    """Return a converter of texts with a required form; an empty text counts as unset."""

    def convert(raw: OptionValue) -> str:
        from coder.base.text_faults import FAULTS  # regular expressions, for the few options with such a value

        text = _to_string(raw)
        if text and (fault := FAULTS[kind](text)):
            raise ValueError(fault)
        return text

    return convert


_CONVERTERS: dict[Kind, Callable[[OptionValue], OptionValue]] = {
    "string": _to_string,
    "url": _to_text("url"),
    "host:port": _to_text("host:port"),
    "regexp": _to_text("regexp"),
    "int": lambda raw: int(str(raw)),
    "bool": _to_bool,
    "duration": _to_duration,
    "string-array": _to_list,
    "allow-list": _to_list,
    "struct": lambda raw: raw,
}
