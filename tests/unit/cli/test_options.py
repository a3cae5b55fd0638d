"""Options of a command as fields of a class: their order, kinds, defaults and values."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

import pytest

from coder.cli.core.command import Command, load
from coder.cli.core.command_table import COMMANDS
from coder.cli.core.options import YES, AllowList, HostPort, Options, Url, YesOption, option
from coder.cli.core.parsing import parse


class Base(Options):
    """Two fields, of which the second has no flag."""

    first: str = option("a", "First.")
    plain: bool = False


class OwnFirst(Base, YesOption):
    second: int = option(2, "Second.", env="CODER_SECOND", short="s")


class BasesFirst(Base, bases_first=True):
    second: int = option(2, "Second.")
    plain: bool = option(False, "Plain.", flag="ordinary")
    first: str = option("b", "Another.")


class Kinds(Options):
    text: str = option("")
    number: int = option(0)
    switch: bool = option(False)
    duration: timedelta = option(timedelta())
    texts: tuple[str, ...] = option(())
    address: Url = option("")
    listener: HostPort = option("")
    allowed: AllowList = option(())
    word: Literal["x", "y"] = option("x", choices=("x", "y"))


def flags(options: type[Options]) -> list[str]:
    return [item.flag for item in options.declared]


def test_own_fields_precede_bases() -> None:
    assert flags(OwnFirst) == ["second", "first", "yes"]


def test_bases_first_keeps_places() -> None:
    assert flags(BasesFirst) == ["first", "second", "ordinary"]
    assert BasesFirst.declared[0].default == "b"


def test_shared_descriptions_are_equal() -> None:
    class Shared(Options):
        yes: bool = YES

    assert Shared.declared == YesOption.declared


def test_annotation_is_kind() -> None:
    assert [item.kind for item in Kinds.declared] == [
        "string",
        "int",
        "bool",
        "duration",
        "string-array",
        "url",
        "host:port",
        "allow-list",
        "string",
    ]


def test_unknown_annotation_is_rejected() -> None:
    with pytest.raises(KeyError, match="float"):
        type("Odd", (Options,), {"__annotations__": {"x": "float"}, "x": option(1.0)})


def test_parser_sets_typed_values() -> None:
    command = Command("list", "", OwnFirst)
    invocation = parse(command, ["--first=x", "-y"], {"CODER_SECOND": "7"})
    options = invocation.options
    assert (options.first, options.second, options.plain, options.yes) == ("x", 7, False, True)
    assert [invocation.given(name) for name in ("first", "second", "yes")] == [True] * 3
    assert parse(command, [], {}).given_values({"first": "name", "second": "count"}) == {}
    assert invocation.given_values({"first": "name", "second": "count"}) == {"name": "x", "count": 7}


def test_options_are_frozen() -> None:
    options = OwnFirst(first="x")
    with pytest.raises(AttributeError, match="frozen: first"):
        options.first = "y"  # type: ignore[misc]
    other = options.replaced({"second": 5})
    assert (other.first, other.second, options.second) == ("x", 5, 2)


@pytest.mark.parametrize("name", COMMANDS)
def test_attributes_have_their_flags(name: str) -> None:
    """A plain field of a base is overridden in each class that has its flag."""
    command = load(name)
    for item in command.options_class.declared:
        assert getattr(command.options_class, item.name) == item.default
