"""Error messages of other libraries that the provider repeats: URLs, UUIDs, JSON, regular expressions."""

from __future__ import annotations

from typing import Any, cast

import pytest

from coder.domain.foundation.go_url import url_problem
from coder.domain.foundation.go_uuid import NotUuid, parse_uuid
from coder.domain.templates.parameter_rules import Validation, type_problem, validation_problem
from coder.provisionerd.terraform.provider.go_json import GoJsonError, decode_list


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/icon/x.svg",
        "https://a.b/c?d=e#f",
        "http://[::1]:80/",
        "mailto:a@b",
        "https://u:p@h/",
        "a/b:c",
        "http://h/%41",
        "https://[fe80::1%25en0]/",
        "//host/path",
        "*",
        "javascript:alert(1)",
        "http://h:",
    ],
)
def test_valid_urls(text: str) -> None:
    assert url_problem(text) == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("http://bad host/", 'invalid character " " in host name'),
        ("http://[bad", "missing ']' in host"),
        ("http://h:port/", 'invalid port ":port" after host'),
        ("http://[::1]x/", 'invalid port "x" after host'),
        (":nothing", "missing protocol scheme"),
        ("a:b/c:d", ""),
        ("1a:b", "first path segment in URL cannot contain colon"),
        ("http://h/%zz", 'invalid URL escape "%zz"'),
        ("http://h/a\x7f", "net/url: invalid control character in URL"),
        ("http://a b@h/", "net/url: invalid userinfo"),
        ("http://h%41/", 'invalid URL escape "%41"'),
    ],
)
def test_invalid_urls(text: str, reason: str) -> None:
    assert url_problem(text).partition('": ')[2].replace("\\x7f", "\x7f") == reason


def test_uuids() -> None:
    plain = "aaaaaaaa-0000-4000-8000-00000000000f"
    for text in (plain.upper(), f"urn:uuid:{plain}", "{" + plain + "}", plain.replace("-", "")):
        assert parse_uuid(text) == plain
    assert parse_uuid("x") == NotUuid("invalid UUID length: 1")
    assert parse_uuid("g" * 36) == NotUuid("invalid UUID format")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("developers", "invalid character 'd' looking for beginning of value"),
        ("[1", "unexpected end of JSON input"),
        ("{}", "json: cannot unmarshal object into Go value of type []string"),
        ("[1]", "json: cannot unmarshal number into Go value of type string"),
    ],
)
def test_json_lists(text: str, sentence: str) -> None:
    with pytest.raises(GoJsonError) as caught:
        decode_list(text, str)
    assert caught.value.message == sentence


def _validation(**given: Any) -> Validation:
    empty = {"min": 0, "max": 0, "min_disabled": True, "max_disabled": True, "monotonic": "", "regex": "", "error": ""}
    return cast("Validation", {**empty, **given})


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("(?=x)", "invalid or unsupported Perl syntax: `(?=`"),
        ("[a", "missing closing ]: `[a`"),
        ("(a", "missing closing ): `(a`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
    ],
)
def test_regular_expressions_are_re2(pattern: str, sentence: str) -> None:
    problem = validation_problem(_validation(regex=pattern, error="e"), "string", "x", None)
    assert problem == f"compile regex <nil>: error parsing regexp: {sentence}"


@pytest.mark.parametrize(
    ("kind", "value", "is_valid"),
    [
        ("number", "1e3", True),
        ("number", "0x1p-2", True),
        ("number", " 1", False),
        ("number", "inf", True),
        ("number", "", False),
        ("bool", "T", True),
        ("bool", "yes", False),
        ("list(string)", '["a"]', True),
        ("list(string)", "null", True),
        ("list(string)", "[1]", False),
        ("string", "anything", True),
    ],
)
def test_types(kind: str, value: str, is_valid: bool) -> None:
    assert (type_problem(kind, value) == "") is is_valid
