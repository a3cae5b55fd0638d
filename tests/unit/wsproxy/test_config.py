"""Every setting that a proxy shares with the server is used, or listed with the reason why not."""

from __future__ import annotations

import re

import pytest

from coder.base.config import Inputs
from coder.coderd.config.options import OPTIONS
from coder.wsproxy.config import OWN_OPTIONS, PROXY_OPTIONS, SHARED, WITHOUT_EFFECT, proxy_config
from tests.kit.paths import ROOT

RUN = (
    *(ROOT / "coder/wsproxy").glob("*.py"),
    ROOT / "coder/cli/server/workspace_proxy_server.py",
    ROOT / "coder/appproxy/apps/authorizer.py",
    ROOT / "coder/appproxy/http/listener.py",
    ROOT / "coder/appproxy/http/listening_sockets.py",
    ROOT / "coder/appproxy/http/served_certificates.py",
    ROOT / "coder/appproxy/http/rate_limits.py",
    ROOT / "coder/appproxy/http/client_address.py",
)
BY_THE_COMMAND = {"verbose", "write_config", "address"}
"""Global options, options of the server's configuration file, and former names."""


def test_every_shared_setting_is_used() -> None:
    text = "\n".join(path.read_text() for path in RUN if path.name != "config.py")
    read = set(re.findall(r"(?:config|server|shared)\.(?=(\w+))", text))
    assert SHARED - read == set()


def test_every_proxy_option_is_known() -> None:
    meant = {option.name for option in OPTIONS if "external_workspace_proxies" in dict(option.annotations)}
    assert meant - SHARED - WITHOUT_EFFECT.keys() == BY_THE_COMMAND
    assert not SHARED & WITHOUT_EFFECT.keys() and all(WITHOUT_EFFECT.values())
    named = {option.name for option in PROXY_OPTIONS} - {option.name for option in OWN_OPTIONS}
    assert named == SHARED | WITHOUT_EFFECT.keys()


@pytest.mark.parametrize(
    ("flag", "value_text", "name", "value"),
    [
        ("api-rate-limit", "7", "api_rate_limit", 7),
        (
            "tls-ciphers",
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            "tls_ciphers",
            ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",),
        ),
        ("prometheus-address", "127.0.0.1:7", "prometheus_address", "127.0.0.1:7"),
    ],
)
def test_option_reaches_configuration(flag: str, value_text: str, name: str, value: object) -> None:
    token = "2f3c0a1e-0000-4000-8000-000000000001:secret"
    own = {"primary-access-url": "https://coder.example", "proxy-session-token": token}
    assert getattr(proxy_config(Inputs(flags={**own, flag: value_text})).server, name) == value
