"""Expressions that describe far more than they are long: refused before anything is made, counted in bytes."""

from __future__ import annotations

import tracemalloc

import pytest

from coder.domain.hcl.bounds import MAX_MADE, TooMuchError, weigh
from coder.domain.hcl.evaluate import evaluate
from coder.domain.hcl.functions import function_table
from coder.domain.hcl.lexer import HclError
from coder.domain.hcl.parser import parse_expression_untrusted, parse_file_untrusted
from coder.domain.hcl.scope import EvaluationScope
from coder.domain.hcl.tree import TemplateExpression
from coder.domain.hcl.values import EvaluationError, Value

FUNCTIONS = function_table({})
LONG = "x" * 100_000
NESTED: list[Value] = [1] * 10
for _ in range(12):
    NESTED = [NESTED] * 10
SAME: list[Value] = [1] * 10
for _ in range(12):
    SAME = [SAME] * 10
NAMES: dict[str, Value] = {
    "long": LONG,
    "many": ["x"] * 10_000,
    "texts": [LONG] * 1000,
    "nested": NESTED,
    "same": SAME,
    "lines": "\n" * 999,
}
AMPLIFIERS = {
    "indent": 'indent(2147483648, "a,b\\nc,d")',
    "indent of lines": "indent(100000, lines)",
    "replace": 'replace(long, "x", long)',
    "replace by nothing": 'replace(long, "", long)',
    "replace by pattern": 'replace(long, "/x/", long)',
    "replace by groups": 'replace(long, "/(x+)/", "' + "$1" * 1000 + '")',
    "join": "join(long, many)",
    "join of one text": 'join("", texts)',
    "format": 'format("' + "%[1]s" * 1000 + '", long)',
    "format by width": 'format("' + "%[1]9999s" * 1000 + '", 1)',
    "formatlist": 'formatlist("%s%s", many, long)',
    "regex": 'regex("' + "(" * 30 + "x+" + ")" * 30 + '", long)',
    "regexall": 'regexall("' + "(" * 30 + "x+" + ")" * 30 + '", long)',
    "regex of many groups": 'regex("' + "(" * 300 + "x+" + ")" * 300 + '", long)',
    "regexall of many groups": 'regexall("' + "(" * 300 + "x+" + ")" * 300 + '", long)',
    "setproduct": "setproduct(many" + ', ["y"]' * 2000 + ")",
    "jsonencode": "jsonencode(nested)",
    "jsonencode of one text": "jsonencode(texts)",
    "yamlencode": "yamlencode(nested)",
    "flatten": "flatten(nested)",
    "length": "length(nested)",
    "toset": "toset(nested)",
    "template": '"' + "${long}" * 1000 + '"',
    "directive": '"%{ for x in many }${long}%{ endfor }"',
    "comparison": "nested == same",
    "condition": "true ? nested : same",
    "try": "try(indent(2147483648, lines), 1)",
    "can": "can(join(long, many))",
}

MANY_GROUPS = ("regex of many groups", "regexall of many groups")
"""Four seconds of the pattern's library each: with `--soak` only."""
WALKS = ("jsonencode", "yamlencode", "flatten", "length", "toset", "comparison", "condition")
"""Refused after a walk over a million values, which takes four times as long while memory is measured. All share
`weigh`, so one is measured, and the others with `--soak`."""
MEASURED = [name for name in AMPLIFIERS if name not in (*MANY_GROUPS, *WALKS[1:])]


def scope() -> EvaluationScope:
    return EvaluationScope(NAMES, FUNCTIONS)


@pytest.mark.parametrize("name", WALKS[1:])
def test_walks_of_values_are_refused(name: str) -> None:
    with pytest.raises(TooMuchError):
        evaluate(parse_expression_untrusted(AMPLIFIERS[name]), scope())


@pytest.mark.parametrize(
    "name", [*MEASURED, *(pytest.param(name, marks=pytest.mark.soak) for name in (*MANY_GROUPS, *WALKS[1:]))]
)
def test_amplifying_expressions_are_refused(name: str) -> None:
    expression, own = parse_expression_untrusted(AMPLIFIERS[name]), scope()
    tracemalloc.start()
    try:
        with pytest.raises(TooMuchError):
            evaluate(expression, own)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('indent(2, "a\\nb")', "a\n  b"),
        ('replace("a-b-c", "-", "+")', "a+b+c"),
        ('replace("hello", "/l(l)/", "<$1>")', "he<l>o"),
        ('join(",", ["a", "b"])', "a,b"),
        ('formatlist("%s!", ["a", "b"])', ["a!", "b!"]),
        ('regexall("[a-z]", "a1b")', ["a", "b"]),
        ("length(many)", 10_000),
        ('try(jsondecode("{"), "no")', "no"),
    ],
)
def test_ordinary_expressions_are_evaluated(expression: str, expected: object) -> None:
    assert evaluate(parse_expression_untrusted(expression), scope()) == expected


def test_visits_of_values_are_charged() -> None:
    """Each visit is small; together they are bounded."""
    expression = parse_expression_untrusted("[for i in range(1000): [for j in range(1000): length(many)]]")
    own = scope()
    with pytest.raises(TooMuchError):
        evaluate(expression, own)
    assert own.budget.visits > -MAX_MADE


def test_weight_counts_shared_parts() -> None:
    part: Value = ["ab", {"key": 1}]
    assert weigh([part, part], with_text=False) == 2 * 4
    assert weigh([part, part], with_text=True) == 2 * (4 + 2 + 3)
    assert weigh([NESTED], with_text=False) == MAX_MADE + 1


@pytest.mark.parametrize("value", ["5", "true", "1.5", '"text"', "{a = 1}", "null", "null == null"])
def test_expanding_needs_a_list(value: str) -> None:
    detail = "must not be null" if value == "null" else "must be of a tuple, list, or set type"
    with pytest.raises(EvaluationError, match=rf"^The expanding argument \(indicated by \.\.\.\) {detail}\.$"):
        evaluate(parse_expression_untrusted(f"max({value}...)"), scope())


@pytest.mark.parametrize(("value", "expected"), [("[3, 7]", 7), ("toset([3, 7])", 7)])
def test_lists_and_sets_expand(value: str, expected: int) -> None:
    assert evaluate(parse_expression_untrusted(f"max({value}...)"), scope()) == expected


class _CountedText(str):
    """Text that counts the characters searched for line ends."""

    __slots__ = ("searched",)
    searched: int

    def count(self, what: str, start: int = 0, end: int | None = None, /) -> int:  # type: ignore[override]
        stop = len(self) if end is None else end
        self.searched = getattr(self, "searched", 0) + max(stop - start, 0)
        return super().count(what, start, stop)


def test_lines_of_interpolations_are_counted_once() -> None:
    text = _CountedText('a = "' + "%{ for a in b }x%{ endfor }" * 500 + '"\nb = "' + "${a}" * 500 + '"\n')
    parse_file_untrusted(text, "main.tf")
    assert text.searched < 10 * len(text)


def test_lines_of_interpolations_are_right() -> None:
    file = parse_file_untrusted('a = <<E\n${x}\n"${"${y}"}"\n${z}\nE\n', "main.tf")
    template = file.body.attributes["a"]
    assert isinstance(template, TemplateExpression)
    assert [part.span.line for part in template.parts if not isinstance(part, str)] == [2, 3, 4]


def test_open_comment_is_one_error() -> None:
    """It was read as division and multiplication, each of which searched the rest of the file for the end."""
    with pytest.raises(HclError, match="Unterminated comment"):
        parse_file_untrusted("a = 1\n/* b " + "/* " * 100, "main.tf")
    parse_file_untrusted("a = 1 /* b */ + /**/ 2 // /*\n# /*\n", "main.tf")


@pytest.mark.parametrize("step", ["[*]", ".*", "[*].a", ".*.a[0]"])
def test_splats_count_as_depth(step: str) -> None:
    with pytest.raises(HclError, match="Nested too deeply"):
        parse_expression_untrusted("a" + step * 5000)
    parse_expression_untrusted("a" + step * 20)


@pytest.mark.parametrize(
    "call",
    [
        "distinct(large)",
        "toset(large)",
        "setunion(large, large)",
        "setsubtract(large, large)",
        "setintersection(large, large)",
        "matchkeys(large, large, large)",
        "distinct(pairs)",
    ],
)
def test_repetitions_are_found_in_linear_time(call: str) -> None:
    """Counted in comparisons: twenty thousand texts, each with each, took a server's core for ten seconds."""
    compared = 0

    class Text(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

    large: list[Value] = [Text(number) for number in range(2000)]
    names: dict[str, Value] = {"large": large, "pairs": [[item, 1] for item in large]}
    evaluate(parse_expression_untrusted(call), EvaluationScope(names, FUNCTIONS))
    assert compared < 10 * len(large)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('distinct(["b", "a", "b"])', ["b", "a"]),
        ("distinct([[1], [1, 2], [1]])", [[1], [1, 2]]),
        ("distinct([{ a = 1 }, { a = 1.0 }, { a = 2 }])", [{"a": 1}, {"a": 2}]),
        ("distinct([[], null, null])", [[], None]),
        ("setsubtract([[1], [2]], [[2]])", [[1]]),
        ("[for self in [1]: self]", [1]),
        ('{ for self, other in ["a"]: self => other }', {"0": "a"}),
    ],
)
def test_equal_values_and_odd_names(expression: str, expected: object) -> None:
    assert evaluate(parse_expression_untrusted(expression), EvaluationScope({}, FUNCTIONS)) == expected
