"""Sentences of Go's encoding/json: what its scanner and decoder say of each kind of broken document."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coder.domain.foundation.go_json import MAX_EXPLAINED, explain_rest, explain_syntax, explain_type

SYNTAX = [
    (b"", "EOF"),
    (b" \t\r\n", "EOF"),
    (b"{", "unexpected EOF"),
    (b'{"a"', "unexpected EOF"),
    (b'{"a":1', "unexpected EOF"),
    (b'"a', "unexpected EOF"),
    (b'"a\\', "unexpected EOF"),
    (b"tru", "unexpected EOF"),
    (b"-", "unexpected EOF"),
    (b"1.", "unexpected EOF"),
    (b"1e+", "unexpected EOF"),
    (b"nojson", "invalid character 'o' in literal null (expecting 'u')"),
    (b"trex", "invalid character 'e' in literal true (expecting 'u')"),
    (b"fals3", "invalid character '3' in literal false (expecting 'e')"),
    (b"zz", "invalid character 'z' looking for beginning of value"),
    (b"NaN", "invalid character 'N' looking for beginning of value"),
    (b"'a'", "invalid character '\\'' looking for beginning of value"),
    (b"\xef\xbb\xbf{}", "invalid character '\u00ef' looking for beginning of value"),
    (b"\xff", "invalid character '\u00ff' looking for beginning of value"),
    (b"\x85", "invalid character '\\u0085' looking for beginning of value"),
    (b"\x01", "invalid character '\\x01' looking for beginning of value"),
    (b"\\", "invalid character '\\\\' looking for beginning of value"),
    (b'{"a":}', "invalid character '}' looking for beginning of value"),
    (b"[1,]", "invalid character ']' looking for beginning of value"),
    (b"{a:1}", "invalid character 'a' looking for beginning of object key string"),
    (b"{'a':1}", "invalid character '\\'' looking for beginning of object key string"),
    (b'{"a":1,}', "invalid character '}' looking for beginning of object key string"),
    (b'{"a" 1}', "invalid character '1' after object key"),
    (b'{"a":1 "b":2}', "invalid character '\"' after object key:value pair"),
    (b'{"a":01}', "invalid character '1' after object key:value pair"),
    (b"[1 2]", "invalid character '2' after array element"),
    (b'["a\nb"]', "invalid character '\\n' in string literal"),
    (b'["\\x"]', "invalid character 'x' in string escape code"),
    (b'["\\u12g4"]', "invalid character 'g' in \\u hexadecimal character escape"),
    (b"[-a]", "invalid character 'a' in numeric literal"),
    (b"[1.a]", "invalid character 'a' after decimal point in numeric literal"),
    (b"[1ea]", "invalid character 'a' in exponent of numeric literal"),
    (b"{} trailing", ""),
    (b"01", ""),
    (b'{"a": [1.5e3, true, null, "\\ud800\\n", {}, []]}', ""),
]
WHOLE = [
    (b"", "unexpected end of JSON input"),
    (b"[1", "unexpected end of JSON input"),
    (b"{} x", "invalid character 'x' after top-level value"),
    (b"01", "invalid character '1' after top-level value"),
    (b" [] ", ""),
]
TYPES = [
    (
        5,
        "string",
        "L.email",
        "json: cannot unmarshal number into Go struct field L.email of type string",
    ),
    ({}, "[]string", "", "json: cannot unmarshal object into Go value of type []string"),
    (True, "string", "", "json: cannot unmarshal bool into Go value of type string"),
    ("x", "int64", "", "json: cannot unmarshal string into Go value of type int64"),
    (1.5, "int64", "", "json: cannot unmarshal number 1.5 into Go value of type int64"),
    ([], "bool", "", "json: cannot unmarshal array into Go value of type bool"),
]


@pytest.mark.parametrize(("raw", "expected"), SYNTAX)
def test_syntax_sentence(raw: bytes, expected: str) -> None:
    assert explain_syntax(raw) == expected


@pytest.mark.parametrize(("raw", "expected"), WHOLE)
def test_whole_text_sentence(raw: bytes, expected: str) -> None:
    assert explain_rest(raw) == expected


@pytest.mark.parametrize(("value", "target", "field", "expected"), TYPES)
def test_type_sentence(value: object, target: str, field: str, expected: str) -> None:
    assert explain_type(value, target, field) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(JSON)
def test_valid_documents_have_no_fault(value: object) -> None:
    assert explain_rest(json.dumps(value).encode()) == ""


def _reject(name: str) -> object:
    raise ValueError(name)


@given(st.binary() | st.text('{}[]",:0123456789.eE+-\\u tfn').map(str.encode))
def test_every_rejected_text_is_explained(raw: bytes) -> None:
    try:
        json.loads(raw.decode("latin-1"), parse_constant=_reject)
    except ValueError:
        assert explain_rest(raw)
    else:
        assert explain_rest(raw) == "" or not raw.isascii()


def test_long_texts_are_not_scanned() -> None:
    assert explain_syntax(b"[" + b"1," * (MAX_EXPLAINED // 2)) == ""
    assert explain_rest(b"[" * (MAX_EXPLAINED + 1)) == ""
    assert explain_rest(b"[" * MAX_EXPLAINED) == "unexpected end of JSON input"
