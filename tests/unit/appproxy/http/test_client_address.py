"""Client addresses behind proxies."""

from __future__ import annotations

from typing import Any

import pytest

from coder.appproxy.http.client_address import TrustedProxies
from coder.base.errors import CoderError
from coder.coderd.config.settings import ServerConfig
from tests.kit.server.server_in_process import running_coderd

CONFIG = ServerConfig(proxy_trusted_origins=("10.0.0.0/8",), proxy_trusted_headers=("X-Forwarded-For",))


@pytest.mark.parametrize(
    ("peer", "header", "address"),
    [
        ("9.9.9.9", "1.2.3.4", "9.9.9.9"),
        ("10.0.0.1", "1.2.3.4", "1.2.3.4"),
        ("10.0.0.1", "6.6.6.6, 1.2.3.4", "1.2.3.4"),
        ("10.0.0.1", "6.6.6.6, 1.2.3.4, 10.2.2.2", "1.2.3.4"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "<script>", "10.0.0.1"),
    ],
)
def test_address(peer: str, header: str, address: str) -> None:
    proxies = TrustedProxies(CONFIG)
    assert proxies.address(peer, [(b"x-forwarded-for", header.encode())]) == address
    # The same list, with a line for each proxy.
    lines = [(b"x-forwarded-for", part.strip().encode()) for part in header.split(",")]
    assert proxies.address(peer, lines) == address


def test_no_proxy_is_trusted_by_default() -> None:
    assert TrustedProxies(ServerConfig()).address("10.0.0.1", [(b"x-forwarded-for", b"1.2.3.4")]) == "10.0.0.1"


def test_bad_network_is_one_error() -> None:
    with pytest.raises(CoderError):
        TrustedProxies(ServerConfig(proxy_trusted_origins=("nonsense",)))


async def test_recorded_address_is_the_clients() -> None:
    settings: dict[str, Any] = {
        "proxy_trusted_origins": ("127.0.0.0/8",),
        "proxy_trusted_headers": ("X-Forwarded-For",),
    }
    async with running_coderd(first_user=True, **settings) as world:
        created = await world.post("/api/v2/users/me/keys", headers={"X-Forwarded-For": "1.2.3.4"})
        from coder.coderd.store.access.system_keys import get_key

        row = await world.ctx.db.read(get_key, created.json()["key"].split("-")[0])
        assert row is not None
        assert row.ip_address == "1.2.3.4"
