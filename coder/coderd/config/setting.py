"""Declaration of settings: each is a dataclass field with its complete description, in one place.

    @concern(TLS)
    @dataclass(frozen=True, kw_only=True)
    class TlsSettings:
        tls_enable: bool = setting(False, "TLS Enable", "Listen with TLS.", yaml="enable", path="tls.enable")

The flag is the attribute's name with dashes, the environment variable `CODER_` and that in capitals, the kind of value
the annotation (`Url`, `HostPort` and `Regexp` are texts of a form); `options_of` builds the option table from the
fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import Field, dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias, TypeVar

from coder.base.config import Kind, Option
from coder.base.duration import format_duration
from coder.base.secret import Secret

_KINDS: dict[str, Kind] = {
    "str": "string",
    "Secret": "string",
    "Path": "string",
    "int": "int",
    "bool": "bool",
    "timedelta": "duration",
    "tuple[str, ...]": "string-array",
    "Json": "struct",
    "Url": "url",
    "HostPort": "host:port",
    "Regexp": "regexp",
}
Url = str
HostPort = str
Regexp = str
"""Texts with a form, as annotations of settings; `base/text_faults.py` explains their faults."""
_GROUP = "__setting_group__"
T = TypeVar("T")
Default: TypeAlias = str | int | timedelta | tuple[str, ...] | Path | Secret


@dataclass(frozen=True, slots=True)
class SettingGroup:
    """Heading of the help and level of the YAML file."""

    name: str
    yaml: str = ""
    description: str = ""
    parent: SettingGroup | None = None

    def chain(self) -> Iterator[SettingGroup]:
        """Return the groups from the outermost to this one."""
        if self.parent is not None:
            yield from self.parent.chain()
        yield self


@dataclass(frozen=True, slots=True)
class ServerOption(Option):
    """Setting of the server as an option: the fields of `base.config`, and those the API adds."""

    title: str = ""
    group_of: SettingGroup | None = None
    annotations: tuple[tuple[str, str], ...] = ()
    instead: tuple[str, ...] = ()
    """Flags that replace this deprecated one."""
    enum: bool = False
    """Whether the API shows its choices with the value."""
    shown_default: str = ""
    path: str = ""
    """Dotted location in the tree of `GET /deployment/config`; `?` at the end leaves an empty value out."""


@dataclass(frozen=True, slots=True)
class _Declared:
    title: str
    help: str
    env: str
    group: SettingGroup | None
    yaml: str
    path: str
    short: str
    hidden: bool
    secret: bool
    annotations: tuple[tuple[str, str], ...]
    instead: tuple[str, ...]
    choices: tuple[str, ...]
    enum: bool
    shown: str | None
    least: timedelta


EVERY = timedelta(seconds=1)
"""`least` of repeated actions: 0 would repeat without a pause."""


def setting(
    default: T,
    title: str,
    help: str,
    *,
    env: str = "",
    group: SettingGroup | None = None,
    yaml: str = "",
    path: str = "",
    short: str = "",
    hidden: bool = False,
    secret: bool = False,
    enterprise: bool = False,
    proxies: bool = False,
    instead: tuple[str, ...] = (),
    choices: tuple[str, ...] = (),
    enum: tuple[str, ...] = (),
    shown: str | None = None,
    least: timedelta = timedelta(),
) -> T:
    """Return a dataclass field with the setting's description. `shown` is the default in the API's form, if it differs
    from the value; `proxies` makes workspace proxies take it too; `enum` are choices the API shows."""
    marks = {"enterprise": enterprise, "external_workspace_proxies": proxies}
    declared = _Declared(
        title,
        help,
        env,
        group,
        yaml,
        path,
        short,
        hidden,
        secret or isinstance(default, Secret),
        tuple((name, "true") for name, holds in marks.items() if holds),
        instead,
        enum or choices,
        bool(enum),
        shown,
        least,
    )
    if isinstance(default, Secret):  # not hashable, so it cannot be a plain default
        return field(default_factory=lambda: default, metadata={"setting": declared})
    return field(default=default, metadata={"setting": declared})


def concern(group: SettingGroup) -> Callable[[type[T]], type[T]]:
    """Set the group of a dataclass's settings."""

    def mark(cls: type[T]) -> type[T]:
        setattr(cls, _GROUP, group)
        return cls

    return mark


def options_of(*classes: type) -> tuple[ServerOption, ...]:
    """Return the options declared by these dataclasses, in order."""
    return tuple(
        _option(item, item.metadata["setting"], getattr(cls, _GROUP))
        for cls in classes
        for item in fields(cls)
        if "setting" in item.metadata
    )


def _option(item: Field[Default], declared: _Declared, of_class: SettingGroup) -> ServerOption:
    group = declared.group or of_class
    kind = _KINDS[str(item.type)]
    default = item.default if isinstance(item.default, str | int | timedelta | tuple) else ""
    if isinstance(item.default, Path):
        default = str(item.default)
    annotations = dict(declared.annotations)
    if declared.secret:
        annotations |= {"secret": "true"}
    if kind == "duration":
        annotations["format_duration"] = "true"
    flag = item.name.replace("_", "-")
    prefix = [part.yaml for part in group.chain() if part.yaml]
    return ServerOption(
        name=item.name,
        flag=flag,
        env=declared.env or "CODER_" + item.name.upper(),
        yaml=".".join([*prefix, declared.yaml]) if declared.yaml else "",
        kind=kind,
        default=default,
        help=declared.help,
        group=" / ".join(part.name for part in group.chain()),
        short=declared.short,
        hidden=declared.hidden,
        secret=declared.secret,
        choices=declared.choices,
        least=declared.least,
        title=declared.title,
        group_of=None if group.name == "General" else group,
        annotations=tuple(annotations.items()),
        instead=declared.instead,
        enum=declared.enum,
        shown_default=_displayed_default(default) if declared.shown is None else declared.shown,
        path=declared.path,
    )


def _displayed_default(default: Default) -> str:
    """Return the displayed default; Go programs show one only if it is not empty."""
    if not default:
        return ""
    if isinstance(default, timedelta):
        return format_duration(default)
    if isinstance(default, tuple):
        return ",".join(default)
    return "true" if default is True else str(default)
