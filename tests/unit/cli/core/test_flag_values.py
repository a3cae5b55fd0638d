"""Error texts for invalid flag values, as of Go programs."""

from __future__ import annotations

from typing import get_args

import pytest

from coder.base.config import Kind, Option
from coder.cli.core.command import load
from coder.cli.core.command_table import COMMANDS
from coder.cli.core.flag_values import fault


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("int", "x", 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("int", "-7", ""),
        ("int", "9223372036854775808", 'strconv.ParseInt: parsing "9223372036854775808": value out of range'),
        ("int", "-9223372036854775808", ""),
        ("int", "9" * 5000, f'strconv.ParseInt: parsing "{"9" * 5000}": value out of range'),
        ("bool", "maybe", 'strconv.ParseBool: parsing "maybe": invalid syntax'),
        ("duration", "soon", 'time: invalid duration "soon"'),
        ("duration", "1h30m", ""),
        ("duration", "0", ""),
        ("duration", "5", 'time: missing unit in duration "5"'),
        ("duration", "", 'time: invalid duration ""'),
        ("url", "https://dev.example.com:8443/x", ""),
        ("url", "dev.example.com", ""),
        ("url", "https://[::1]:80/", ""),
        ("url", ":x", 'parse ":x": missing protocol scheme'),
        ("url", "https://a b", 'parse "https://a b": invalid character " " in host name'),
        ("url", "http://a:b", 'parse "http://a:b": invalid port ":b" after host'),
        ("url", "http://a/%zz", 'parse "http://a/%zz": invalid URL escape "%zz"'),
        ("host:port", "dev", "address dev: missing port in address"),
        ("regexp", "a*", ""),
    ],
)
def test_values(kind: Kind, value: str, message: str) -> None:
    assert fault(Option("x", "x", kind=kind), value) == message


def test_every_kind_has_option() -> None:
    used = {option.kind for words in COMMANDS for option in load(words).options}
    assert used == set(get_args(Kind)), "a kind that no option has is a rule that nothing keeps"
