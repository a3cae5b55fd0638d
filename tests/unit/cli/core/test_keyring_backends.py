"""The keyring of each system, by the keyring library's own back ends with the system's calls replaced.

The calls themselves (Security framework, Credential Manager, D-Bus) exist on their systems only.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from keyring.backends import SecretService, Windows, macOS

from coder.base.errors import CoderError
from coder.cli.core import keyring_store

URL = "https://coder.example.com"


class Keychain:
    """Calls of `keyring.backends.macOS.api`, on a dictionary. `status` is the error of the next call."""

    Error = type("Error", (Exception,), {})
    NotFound = type("NotFound", (Error,), {})
    KeychainDenied = type("KeychainDenied", (Error,), {})

    def __init__(self) -> None:
        self.items: dict[tuple[str | None, str, str], str] = {}
        self.failure: Exception | None = None

    def set_generic_password(self, name: str | None, service: str, username: str, password: str) -> None:
        self._fail()
        self.items[name, service, username] = password

    def find_generic_password(self, name: str | None, service: str, username: str) -> str:
        self._fail()
        if (name, service, username) not in self.items:
            raise self.NotFound("Item not found")
        return self.items[name, service, username]

    def delete_generic_password(self, name: str | None, service: str, username: str) -> None:
        self._fail()
        if self.items.pop((name, service, username), None) is None:
            raise self.NotFound("Item not found")

    def _fail(self) -> None:
        if self.failure is not None:
            raise self.failure


@pytest.fixture
def keychain(monkeypatch: pytest.MonkeyPatch) -> Keychain:
    """The back end of macOS, on this keychain."""
    found = Keychain()
    monkeypatch.setattr(macOS, "api", found, raising=False)
    monkeypatch.setattr(keyring_store, "find_keyring", macOS.Keyring)
    return found


@pytest.mark.parametrize(
    ("platform", "expected"),
    [("darwin", macOS.Keyring), ("win32", Windows.WinVaultKeyring), ("linux", SecretService.Keyring)],
)
def test_each_system_has_own_keyring(platform: str, expected: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyring_store, "sys", SimpleNamespace(platform=platform))
    monkeypatch.setattr(expected, "viable", True)
    assert type(keyring_store._system_keyring()) is expected


def test_keychain_keeps_token(keychain: Keychain, tmp_path: Path) -> None:
    """The item's service is `coder`, its account the deployment; the marker file names the account only."""
    folder = tmp_path / "config"
    keyring_store.store_token(folder, URL, "token-1")
    keyring_store.store_token(folder, URL, "token-2")
    assert keychain.items == {(None, "coder", URL): "token-2"}
    assert keyring_store.is_stored(folder) and keyring_store.read_token(folder) == "token-2"
    assert [path.read_text() for path in folder.iterdir()] == [URL]
    keyring_store.delete_token(folder)
    assert keychain.items == {} and not keyring_store.is_stored(folder)


def test_missing_keychain_item_is_no_error(keychain: Keychain, tmp_path: Path) -> None:
    """A user removed the item in Keychain Access."""
    keyring_store.store_token(tmp_path, URL, "token")
    keychain.items.clear()
    assert keyring_store.read_token(tmp_path) == ""
    keyring_store.delete_token(tmp_path)
    assert not keyring_store.is_stored(tmp_path)


def test_denied_keychain_is_explained(keychain: Keychain, tmp_path: Path) -> None:
    """A user clicked "Deny", or the session has no screen: nothing is written."""
    keychain.failure = Keychain.KeychainDenied("User canceled the operation")
    with pytest.raises(CoderError, match="did not write the session token") as refused:
        keyring_store.store_token(tmp_path, URL, "token")
    assert "Unlock the keyring" in refused.value.hint and not list(tmp_path.iterdir())
