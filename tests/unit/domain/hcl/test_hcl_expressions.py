"""Expressions mean the same as in Terraform: tests/data/terraform/expressions.json holds the results of 1.11."""

from __future__ import annotations

import json
import math

import pytest

from coder.domain.hcl.evaluate import evaluate
from coder.domain.hcl.functions import function_table
from coder.domain.hcl.lexer import HclError
from coder.domain.hcl.parser import parse_expression_untrusted
from coder.domain.hcl.scope import EvaluationScope
from coder.domain.hcl.values import EvaluationError
from tests.kit.paths import DATA

RECORDED = DATA / "terraform" / "expressions.json"
FILES = {
    "data.txt": b"hello\n",
    "t.tftpl": b"",
    "sub/a.txt": b"a",
    "sub/b.txt": b"b",
    "sub/c.txt": b"c",
    "sub/x/d.txt": b"d",
}
FUNCTIONS = function_table(FILES)


def value_of(text: str) -> list[object]:
    """Return the value as JSON in a list, or an empty list for an expression without a value."""
    try:
        written = evaluate(parse_expression_untrusted(f"jsonencode(\n{text}\n)"), EvaluationScope({}, FUNCTIONS))
    except (EvaluationError, HclError):
        return []
    assert isinstance(written, str)
    return [json.loads(written)]


def test_recorded_expressions() -> None:
    recorded = json.loads(RECORDED.read_text())
    wrong = {text: (value_of(text), expected) for text, *expected in recorded if value_of(text) != expected}
    assert not wrong
    assert len(recorded) > 400


@pytest.mark.parametrize("text", ["1 / 3 * 3 == 1", '"v${10 / 3}" == "v3.33333333333333"'])
def test_division_has_enough_digits(text: str) -> None:
    assert value_of(text) == [True]


def test_huge_numbers_are_refused() -> None:
    assert value_of("pow(10, 300)") != []
    assert value_of("1e400 * 1e400 * 1e400 * 1e400 * 1e400 * 1e400 * 1e400 * 1e400") == []


def test_self_referencing_documents_are_bounded() -> None:
    assert value_of('yamldecode("a: &a [*a]")') == []
    bomb = "\\n".join(["a0: &a0 [x]", *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9))])
    assert value_of(f'yamldecode("{bomb}")') == []


NUMBERS = (
    "0",
    "1",
    "-7",
    "3",
    "0.5",
    "-0.1",
    "1e-300",
    "1e300",
    "1e308",
    "-1e308",
    "9" * 400,
    "-" + "9" * 2000,
    "9" * 4300,
    "Infinity",
    "NaN",
    "9" * 5000,
    "9" * 50_000,
    f"{'9' * 400}.5",
    "0." + "0" * 400 + "1",
    "1e400",
    "1e999999999",
)
USES = (
    *(f"({{0}}) {sign} ({{1}})" for sign in ("+", "-", "*", "/", "%", "<", "<=", "==", "!=")),
    "-({0})",
    '"${{{0}}}"',
    "range({0})[{1}]",
    "[1, 2][{0}]",
    "{0} > {1} ? {0} : {1}",
    "[for i in [{0}] : i % {1}]",
    "tostring({0})",
    'jsondecode("{0}") % 7',
    'jsondecode("[{0}]")[0]',
    'yamldecode("a: {0}").a / 3',
    "[{0}] == [{1}]",
)


@pytest.mark.parametrize("use", USES)
def test_arithmetic_raises_one_error(use: str) -> None:
    """Arithmetic raises this error only, however large, small or long the numbers are."""
    for left in NUMBERS:
        for right in NUMBERS:
            for item in value_of(use.format(left, right)):
                assert not isinstance(item, float) or math.isfinite(item)


def test_remainders_have_dividends_sign() -> None:
    assert [value_of(f"{a} % {b}") for a, b in ((7, 3), (-7, 3), (7, -3), ("-7.5", 2), (10**40 + 1, 10))] == [
        [1],
        [-1],
        [1],
        [-1.5],
        [1],
    ]
