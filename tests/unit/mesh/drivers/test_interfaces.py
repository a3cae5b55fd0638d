"""The machine's addresses, from netlink and from the fallback."""

from ipaddress import ip_address

import pytest
import trio
import trio.testing

from coder.mesh.drivers import interfaces
from coder.mesh.drivers.interfaces import Network


def test_usable_addresses_ipv4_first() -> None:
    addresses = interfaces.local_addresses()
    assert addresses
    assert len(set(addresses)) == len(addresses)
    assert addresses == sorted(addresses, key=lambda ip: ":" in ip)
    assert not any(ip_address(ip).is_link_local for ip in addresses)


def test_without_netlink_loopback_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> list[str]:
        raise PermissionError

    monkeypatch.setattr(interfaces, "_netlink_addresses", refuse)
    assert "127.0.0.1" in interfaces.local_addresses()


async def test_changes_are_noticed_by_polling(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, more = Network(("192.0.2.1",), ("192.0.2.1",)), Network(("192.0.2.1", "198.51.100.1"), ("192.0.2.1",))
    answers = [before, before, more]
    monkeypatch.setattr(interfaces, "current_network", lambda: answers.pop(0))
    monkeypatch.setattr(interfaces, "_open_watch", lambda: None)
    began = trio.current_time()
    assert await interfaces.wait_network_changed(before) == more
    assert trio.current_time() - began == 2 * interfaces.POLL
