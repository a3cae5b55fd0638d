"""Proxy settings of Windows' registry, and the hosts that they leave out."""

from __future__ import annotations

import pytest

from coder.net import policy
from coder.net.policy import DialPolicy, proxy_for, user_proxies
from coder.net.system_proxies import desktop_proxies, registry_proxies

BOX = "box:3128"


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (BOX, {"http": BOX, "https": BOX}),
        ("http://box:3128", {"http": "http://box:3128", "https": "http://box:3128"}),
        ("http=a:1;https=b:2;ftp=c:3;socks=d:4", {"http": "a:1", "https": "b:2"}),
        ("http=a:1", {"http": "a:1"}),
        ("socks=d:4", {}),
        ("https= ;http=a:1;", {"http": "a:1"}),
        ("", {}),
    ],
)
def test_servers_by_scheme(server: str, expected: dict[str, str]) -> None:
    assert registry_proxies({"ProxyEnable": 1, "ProxyServer": server}) == expected
    assert registry_proxies({"ProxyEnable": 0, "ProxyServer": server}) == {}
    assert registry_proxies({"ProxyServer": server}) == {}


@pytest.mark.parametrize(
    ("host", "goes_by_proxy"),
    [
        ("coder.example.com", True),
        ("intranet", False),
        ("a.corp.example", False),
        ("10.1.2.3", False),
        ("192.168.7.1", False),
        ("11.1.2.3", True),
        ("wiki.test", False),
    ],
)
def test_exceptions_bypass_proxy(host: str, goes_by_proxy: bool) -> None:
    override = "*.corp.example;10.*;192.168.*;<local>;https://wiki.test;;"
    proxies = registry_proxies({"ProxyEnable": 1, "ProxyServer": BOX, "ProxyOverride": override})
    found = proxy_for(DialPolicy("https://x.test", proxies=proxies), host, "https")
    assert found == (f"http://{BOX}" if goes_by_proxy else "")


def test_environment_wins_over_desktop(monkeypatch: pytest.MonkeyPatch) -> None:
    assert desktop_proxies() == {}
    monkeypatch.setattr(policy, "desktop_proxies", lambda: {"http": BOX, "https": BOX, "no": "a"})
    assert user_proxies({}) == {"http": BOX, "https": BOX, "no": "a"}
    assert user_proxies({"NO_PROXY": "b"}) == {"http": BOX, "https": BOX, "no": "b"}
    assert user_proxies({"HTTPS_PROXY": "http://u:p@other:1"}) == {"https": "http://u:p@other:1"}
