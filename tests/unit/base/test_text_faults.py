"""Invalid addresses and patterns, with Go's error messages."""

from __future__ import annotations

import pytest

from coder.base.config import Inputs, Kind, Option, resolve
from coder.base.errors import CoderError
from coder.base.text_faults import FAULTS

CASES = [
    ("url", "https://dev.example.com:8443/x", ""),
    ("url", "dev.example.com", ""),
    ("url", "", ""),
    ("url", "https://[::1]:80/", ""),
    ("url", "https://[::1]", ""),
    ("url", "https://[::1]:/", ""),
    ("url", "https://user:pa%20ss@x.example/?a=%zz", ""),
    ("url", "/a:b", ""),
    ("url", "https://x.example?a:b@[", ""),
    ("url", ":x", "missing protocol scheme"),
    ("url", "1a:b", "first path segment in URL cannot contain colon"),
    ("url", "http://[::1", "missing ']' in host"),
    ("url", "http://[::1/x]", "missing ']' in host"),
    ("url", "http://[::1]80", 'invalid port "80" after host'),
    ("url", "http://a:b", 'invalid port ":b" after host'),
    ("url", "http://a:٣", 'invalid port ":٣" after host'),
    ("url", "https://a b", 'invalid character " " in host name'),
    ("url", "http://a b@c", "net/url: invalid userinfo"),
    ("url", "http://a/%zz", 'invalid URL escape "%zz"'),
    ("url", "http://a/#%z", 'invalid URL escape "%z"'),
    ("url", "http://a\x7f", "net/url: invalid control character in URL"),
    ("host:port", "127.0.0.1:80", ""),
    ("host:port", "[::1]:80", ""),
    ("host:port", ":80", ""),
    ("host:port", "a:", ""),
    ("host:port", "", "must not be empty"),
    ("host:port", "nonsense", "missing port in address"),
    ("host:port", "::1:80", "too many colons in address"),
    ("host:port", "[::1]:80:90", "too many colons in address"),
    ("host:port", "[::1]", "missing port in address"),
    ("host:port", "[::1]x:80", "missing port in address"),
    ("host:port", "[::1:80", "missing ']' in address"),
    ("host:port", "a[b:80", "unexpected '[' in address"),
    ("host:port", "a]b:80", "unexpected ']' in address"),
    ("host:port", "[::1[]:80", "unexpected '[' in address"),
    ("regexp", "^a+$", ""),
    ("regexp", "(", "missing ), unterminated subpattern"),
]
FRAME = {"url": 'parse "{0}": {1}', "host:port": "address {0}: {1}", "regexp": "error parsing regexp: {1}: `{0}`"}


@pytest.mark.parametrize(("kind", "value", "message"), CASES)
def test_fault_messages(kind: Kind, value: str, message: str) -> None:
    framed = FRAME[kind].format(value, message) if message and value else message
    assert FAULTS[kind](value) == framed


@pytest.mark.parametrize("source", ["env", "file", "flags"])
@pytest.mark.parametrize(("kind", "value", "message"), CASES)
def test_every_source_is_checked(kind: Kind, value: str, message: str, source: str) -> None:
    """An empty text counts as unset."""
    option = Option("x", "x", "X", "x", kind=kind)
    given = Inputs(**{source: {"X" if source == "env" else "x": value}})
    if not message or not value:
        assert resolve([option], given)["x"] == value
        return
    with pytest.raises(CoderError, match=f"is not a valid {kind}") as caught:
        resolve([option], given)
    assert message in str(caught.value.__cause__)
