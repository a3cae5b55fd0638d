"""Whose page a browser says it asks for: our own, one that could have set our cookies, a stranger's."""

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
        ("http://10.0.0.5:3000", False, False),  # the address that was dialled
        ("https://app--dev--me.coder.example.com", True, True),  # an application below the wildcard
        ("https://wiki.example.com", True, True),
        ("https://coder.example.com:8443", True, True),  # cookies know nothing of ports
        ("https://example.org", True, False),
        ("null", True, True),  # hides whose page it is
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
def test_a_schemes_own_port_makes_nobody_a_stranger(access_url: str, host: str, origin: str) -> None:
    headers = {"host": host, "origin": origin}
    assert not foreign_origin(headers, access_url)
    assert not near_origin(headers, access_url)
    other = {"host": host, "origin": f"{origin}:444"}
    assert foreign_origin(other, access_url)
    assert near_origin(other, access_url)


@pytest.mark.parametrize(
    ("site", "near"), [("same-origin", False), ("none", False), ("same-site", True), ("cross-site", True), ("", True)]
)
def test_of_a_page_that_hides_its_origin_the_browser_says_whose_it_is(site: str, near: bool) -> None:
    headers = {"host": "10.0.0.5:3000", "origin": "null", "sec-fetch-site": site}
    assert near_origin(headers, ACCESS_URL) is near
    assert foreign_origin(headers, ACCESS_URL), "a WebSocket's origin is never hidden from us"
    assert foreign_origin({"host": "", "origin": "null"}, ACCESS_URL)
