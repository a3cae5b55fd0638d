from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis.strategies import text

from coder.domain.foundation.search import (
    FieldRefusal,
    Terms,
    explain_time,
    int_fault,
    parse_query,
    parse_rfc3339,
    positive_fault,
    split_outside_quotes,
)


def test_pairs_and_bare_words() -> None:
    terms = parse_query("owner:ME three words status:Running", "name")
    assert (terms.one("owner"), terms.one("name"), terms.one("status")) == ("me", "three words", "running")
    assert terms.refusals() == []


def test_quotes_protect_blanks_and_colons() -> None:
    terms = parse_query('before:"2020-01-01T00:00:00Z" name:"a b"', "name")
    assert terms.time("before") == datetime(2020, 1, 1, tzinfo=UTC)
    assert terms.one("name") == "a b"
    assert parse_query('"one"', "name").one("name") == "one"
    assert parse_query('search:"bob', "x").one("search") == "bob"


def test_unknown_keys_are_named() -> None:
    terms = parse_query("colour:red name:x", "name")
    terms.one("name")
    assert terms.refusals() == [FieldRefusal("colour", '"colour" is not a valid query param')]


def test_a_key_given_twice() -> None:
    terms = parse_query("status:running status:stopped", "name")
    terms.one("status")
    assert [refusal.detail for refusal in terms.refusals()] == [
        'Query param "status" provided more than once, found 2 times. Only provide 1 instance of this query param.'
    ]


def test_wrong_types_have_recorded_refusals() -> None:
    terms = parse_query("dormant:maybe since:yesterday id:abc", "name")
    assert terms.boolean("dormant") is None
    assert terms.time("since") is None
    assert terms.uuid("id") is None
    details = {refusal.field: refusal.detail for refusal in terms.refusals()}
    assert details["dormant"] == (
        'Query param "dormant" must be a valid boolean: strconv.ParseBool: parsing "maybe": invalid syntax'
    )
    assert details["since"].endswith(
        'parsing time "YESTERDAY" as "2006-01-02T15:04:05.999999999Z07:00": cannot parse "YESTERDAY" as "2006"'
    )
    assert details["id"] == 'Query param "id" must be a valid uuid'


@pytest.mark.parametrize("query", [":x", "x:", "a:b:c"])
def test_malformed_elements(query: str) -> None:
    (refusal,) = parse_query(query, "name").refusals()
    assert refusal.field == "q"


def test_choice_and_uuid_lists() -> None:
    first, second = "6f1d5b0a-0000-4000-8000-000000000001", "6f1d5b0a-0000-4000-8000-000000000002"
    terms = parse_query(f"id:{first},{second} status:zzz", "name")
    assert [str(value) for value in terms.uuids("id")] == [first, second]
    assert terms.choice("status", ("running",)) == ""
    assert len(terms.refusals()) == 1


def test_rfc3339() -> None:
    assert parse_rfc3339("2020-02-29T01:02:03.123456789+02:00") == datetime(2020, 2, 28, 23, 2, 3, 123456, UTC)
    assert parse_rfc3339("2020-02-30T01:02:03Z") is None
    assert parse_rfc3339("2020-02-28") is None
    assert parse_rfc3339("0001-01-01T00:00:00+14:00") is None


def test_split_drops_empty_pieces() -> None:
    assert split_outside_quotes('  a "b c" ', " ") == ["a", "b c"]


@given(text())
def test_arbitrary_query_parses_or_fails(query: str) -> None:
    terms = parse_query(query, "name")
    terms.many("name")
    for refusal in terms.refusals():
        assert refusal.detail


def test_too_long_query_is_refused() -> None:
    assert parse_query("a:b " * 2048, "name").refusals() == [FieldRefusal("a", '"a" is not a valid query param')]
    (refused,) = parse_query("a:b " * 2049, "name").refusals()
    assert refused == FieldRefusal("q", "Query must not be longer than 8192 characters")


def test_long_pattern_is_refused() -> None:
    for plain in ("%" * 256, "a" * 4000):
        terms = parse_query(f"name:{plain}", "q")
        assert (terms.pattern("name"), terms.refusals()) == (plain, [])
    terms = parse_query(f"name:{'%' * 257}", "q")
    assert terms.pattern("name") == ""
    assert terms.refusals() == [
        FieldRefusal("name", 'Query param "name" with wildcards must not be longer than 256 characters')
    ]


@pytest.mark.parametrize("separator", [",", " param:"])
def test_many_patterns_are_refused(separator: str) -> None:
    terms = parse_query("param:" + separator.join("a" * 32), "q")
    assert (len(terms.patterns("param", str)), terms.refusals()) == (32, [])
    terms = parse_query("param:" + separator.join("a" * 33), "q")
    assert terms.patterns("param", str) == []
    detail = 'Query param "param" must not have more than 32 values, found 33'
    assert terms.refusals() == [FieldRefusal("param", detail)]


def test_long_pattern_of_list_is_refused() -> None:
    terms = parse_query(f"param:a,{'%' * 257}", "q")
    assert terms.patterns("param", str) == []
    detail = 'Query param "param" has invalid values: text with wildcards must not be longer than 256 characters'
    assert terms.refusals() == [FieldRefusal("param", detail)]


LISTS: dict[str, tuple[Callable[[Terms], list[Any]], tuple[str, ...], str]] = {
    "uuids": (lambda terms: terms.uuids("key"), ("x", "yy"), "invalid UUID length: 1\ninvalid UUID length: 2"),
    "choices": (
        lambda terms: terms.choices("key", ("a", "b")),
        ("a,x", "y"),
        '"x" is not a valid value\n"y" is not a valid value',
    ),
}


@pytest.mark.parametrize("name", LISTS)
def test_list_faults_share_one_refusal(name: str) -> None:
    read, values, faults = LISTS[name]
    terms = Terms({"key": list(values)})
    assert read(terms) == []
    assert terms.refusals() == [FieldRefusal("key", f'Query param "key" has invalid values: {faults}')]
    assert read(Terms({})) == read(Terms({"key": [""]})) == []


NUMBERS = {
    "9223372036854775807": "",
    "-9223372036854775808": "",
    "+1": "",
    "9223372036854775808": "value out of range",
    "x": "invalid syntax",
    "1_0": "invalid syntax",
    "": "invalid syntax",
}


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_of_64_bits(text: str) -> None:
    expected = NUMBERS[text] and f'strconv.ParseInt: parsing "{text}": {NUMBERS[text]}'
    assert int_fault(text) == expected
    terms = Terms({"n": [text]})
    assert terms.int64("n") == (int(text) if not expected else None)
    sentence = f'Query param "n" must be a valid 64-bit integer: {expected}'
    assert terms.refusals() == ([FieldRefusal("n", sentence)] if expected and text else [])


def test_page_numbers_have_32_bits() -> None:
    assert (positive_fault("2147483647"), positive_fault("0"), positive_fault("-1")) == ("", "", "value is negative")
    assert positive_fault("2147483648").endswith("value out of range")


TIMES = {
    "soon": 'cannot parse "soon" as "2006"',
    "2026": 'cannot parse "" as "-"',
    "2026-1-1T00:00:00Z": 'cannot parse "1-1T00:00:00Z" as "01"',
    "2026-01-01": 'cannot parse "" as "T"',
    "2026-01-01T00:00:00": 'cannot parse "" as "Z07:00"',
    "2026-01-01T00:00:00Zx": 'extra text: "x"',
    "2026-02-30T00:00:00Z": "day out of range",
}


@pytest.mark.parametrize("text", TIMES)
def test_time_refusal_names_missing_part(text: str) -> None:
    assert parse_rfc3339(text) is None
    assert explain_time(text).startswith(f'parsing time "{text}"') and explain_time(text).endswith(TIMES[text])
    assert explain_time("2026-13", "2006-01-02").endswith("month out of range")
    assert explain_time("2026-12", "2006-01-02").endswith('as "2006-01-02": cannot parse "" as "-"')
