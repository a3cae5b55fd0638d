"""Sources of the dashboard's pages beyond their own server."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from coder.coderd.http.site.dashboard_files import _proxy_sources


def sources(url: str, wildcard: str = "", derp_only: bool = False) -> tuple[list[str], list[str]]:
    row = SimpleNamespace(url=url, wildcard_hostname=wildcard, derp_only=derp_only)
    health = SimpleNamespace(healthy_proxies=lambda: (row,))
    services = SimpleNamespace(api=SimpleNamespace(proxy_health=health))
    return _proxy_sources(cast("Any", SimpleNamespace(services=services)))


def test_proxy_is_a_page_source() -> None:
    assert sources("https://sydney.test", "*.sydney.test") == (
        ["https://sydney.test", "wss://sydney.test"],
        ["sydney.test", "*.sydney.test"],
    )
    assert sources("http://10.0.0.7:3001")[0] == ["http://10.0.0.7:3001", "ws://10.0.0.7:3001"]


@pytest.mark.parametrize("url", ["https://a; script-src *", "https://a b", "https://*'none'", "https:///path"])
def test_invalid_address_adds_no_directive(url: str) -> None:
    assert sources(url) == ([], [])


def test_invalid_wildcard_frames_nothing() -> None:
    assert sources("https://a.test", "*.a.test; object-src *") == (["https://a.test", "wss://a.test"], ["a.test"])


def test_relay_proxy_is_no_page_source() -> None:
    assert sources("https://a.test", "*.a.test", derp_only=True) == ([], [])
