"""Origin checks: our own pages, pages that could have set our cookies, and foreign ones."""

from __future__ import annotations

import pytest

from coder.domain.access.origins import foreign_origin, near_origin

ACCESS_URL = "https://coder.example.com"


@pytest.mark.parametrize(
    ("origin", "foreign", "near"),
    [
        ("", False, False),  # no browser, or a page of our own
        ("https://coder.example.com", False, False),
        ("https://CODER.example.com", False, False),
        ("http://10.0.0.5:3000", False, False),  # the address that was requested
        ("https://app--dev--me.coder.example.com", True, True),  # an application below the wildcard
        ("https://wiki.example.com", True, True),
        ("https://coder.example.com:8443", True, True),  # cookies ignore ports
        ("https://example.org", True, False),
        ("null", True, True),  # hides its origin
        ("nonsense", True, True),
    ],
)
def test_origins(origin: str, foreign: bool, near: bool) -> None:
    headers = {"host": "10.0.0.5:3000"} | ({"origin": origin} if origin else {})
    assert (foreign_origin(headers, ACCESS_URL), near_origin(headers, ACCESS_URL)) == (foreign, near)


@pytest.mark.parametrize(
    ("access_url", "host", "origin"),
    [
        ("https://coder.example.com:443", "inside:3000", "https://coder.example.com"),
        ("https://coder.example.com", "coder.example.com:443", "https://coder.example.com"),
        ("http://coder.example.com:80", "coder.example.com", "http://coder.example.com"),
        ("https://coder.example.com", "other.example.com:443", "https://other.example.com"),
        ("http://coder.example.com", "other.example.com:443", "https://other.example.com"),
    ],
)
def test_default_port_keeps_same_origin(access_url: str, host: str, origin: str) -> None:
    headers = {"host": host, "origin": origin}
    assert not foreign_origin(headers, access_url)
    assert not near_origin(headers, access_url)
    other = {"host": host, "origin": f"{origin}:444"}
    assert foreign_origin(other, access_url)
    assert near_origin(other, access_url)


@pytest.mark.parametrize(
    ("site", "near"), [("same-origin", False), ("none", False), ("same-site", True), ("cross-site", True), ("", True)]
)
def test_hidden_origin_uses_sec_fetch_site(site: str, near: bool) -> None:
    headers = {"host": "10.0.0.5:3000", "origin": "null", "sec-fetch-site": site}
    assert near_origin(headers, ACCESS_URL) is near
    assert foreign_origin(headers, ACCESS_URL), "a WebSocket's origin is never hidden from us"
    assert foreign_origin({"host": "", "origin": "null"}, ACCESS_URL)
