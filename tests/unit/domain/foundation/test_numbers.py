"""Digits of any length are a number or None; no other error occurs."""

from __future__ import annotations

import pytest

from coder.domain.foundation.endpoints import read_endpoint
from coder.domain.foundation.numbers import decimal
from coder.domain.foundation.schedules import ScheduleError, parse_weekly
from coder.domain.hcl.parser import parse_expression_untrusted
from coder.domain.templates.parameter_rules import Validation, _number_problem

MANY = "9" * 5000


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("007", 7), ("0" * 5000 + "7", 7), (MANY, 10**30), ("", None), ("-1", None), ("²", None), ("٣", None)],
)
def test_digits(text: str, number: int | None) -> None:
    assert decimal(text) == number


def test_numbers_in_every_input() -> None:
    for endpoint in (f"x:{MANY}", f"x:{'0' * 5000}1{MANY}"):
        with pytest.raises(ValueError, match="65535"):
            read_endpoint(endpoint)
    with pytest.raises(ScheduleError):
        parse_weekly(f"{MANY} 9 * * 1-5")
    parse_expression_untrusted(f"a.0.{MANY}")
    rule: Validation = {
        "error": "",
        "regex": "",
        "min": 0,
        "max": 1,
        "min_disabled": True,
        "max_disabled": True,
        "monotonic": "",
    }
    assert "is not a number" in _number_problem(rule, MANY, None)
