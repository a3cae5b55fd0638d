"""Addresses of a program that a supervisor executes in its place."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest

from coder.base.errors import CoderError
from coder.coderd.config.settings import ServerConfig
from coder.coderd.processes import reload
from coder.coderd.processes.forked import listeners_of
from coder.coderd.processes.sockets import bind_or_keep, check_addresses
from tests.kit.free_ports import free_port


@pytest.fixture
def taken() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield f"127.0.0.1:{other.getsockname()[1]}"


def _config(address: str) -> ServerConfig:
    return replace(ServerConfig(), http_address=address)


def test_taken_address_fails_trial(taken: str) -> None:
    with pytest.raises(CoderError, match="cannot listen"):
        check_addresses(_config(taken), {"http://127.0.0.1:1"})


def test_own_address_passes_trial(taken: str) -> None:
    check_addresses(_config(taken), {f"http://{taken}"})
    check_addresses(_config(taken), None)


def test_trial_leaves_address_free() -> None:
    address = f"127.0.0.1:{free_port()}"
    for _ in range(2):
        check_addresses(_config(address), ())


@pytest.mark.parametrize(("value", "known"), [("1", None), ('["http://a:1"]', {"http://a:1"}), ("[]", set())])
def test_known_addresses_of_releases(monkeypatch: pytest.MonkeyPatch, value: str, known: set[str] | None) -> None:
    monkeypatch.setenv(reload.TRIAL, value)
    assert reload.is_trial()
    assert reload.known_addresses() == known


def test_former_sockets_stay_when_binding_fails(taken: str) -> None:
    former = socket.create_server(("127.0.0.1", 0))
    address = f"127.0.0.1:{former.getsockname()[1]}"
    inherited = [(f"http://{address}", f"http://{address}", former.detach())]
    sockets, error = bind_or_keep(_config(taken), inherited)
    assert error is not None
    assert error.code == "address_in_use"
    with sockets[0].socket, socket.create_connection(sockets[0].socket.getsockname()):
        assert [bound.address for bound in sockets] == [f"http://{address}"]


def test_first_start_requires_its_address(taken: str) -> None:
    with pytest.raises(CoderError, match="cannot listen"):
        bind_or_keep(_config(taken), ())


async def test_kept_tls_socket_is_never_plain() -> None:
    former = socket.create_server(("127.0.0.1", 0))
    sockets, _ = bind_or_keep(_config("no address"), [("https://a", "https://a", former.detach())])
    with sockets[0].socket:
        assert not listeners_of(sockets)
