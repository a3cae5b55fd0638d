"""Session token in the system's keyring instead of a file (`login --use-keyring`).

Uses macOS Keychain, Windows Credential Manager, or the Secret Service of Linux desktops, through the keyring library,
which only this module imports. A marker file in the configuration directory records that the token is in the keyring,
so later commands require no flag.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from coder.base.atomic_file import write_atomically
from coder.base.errors import CoderError

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

SERVICE = "coder"
MARKER_FILE = "session-in-keyring"
"""Marker file; it contains the user name of the token in the keyring."""


def is_stored(directory: Path) -> bool:
    """Return whether the directory's session is in the keyring."""
    return (directory / MARKER_FILE).exists()


def read_token(directory: Path) -> str:
    """Return the token; "" if the keyring has none. Raise CoderError without a keyring."""
    name = (directory / MARKER_FILE).read_text(encoding="utf-8")
    return _calling("read", lambda backend: backend.get_password(SERVICE, name)) or ""


def store_token(directory: Path, url: str, token: str) -> None:
    """Store the token. Raise CoderError without a keyring, before writing anything."""
    _calling("write", lambda backend: backend.set_password(SERVICE, url, token))
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(directory / MARKER_FILE, url)


def delete_token(directory: Path) -> None:
    """Delete the token and the marker file; a missing token is not an error."""
    from keyring.errors import PasswordDeleteError

    name = (directory / MARKER_FILE).read_text(encoding="utf-8")
    try:
        _calling("delete", lambda backend: backend.delete_password(SERVICE, name))
    except CoderError as error:
        if not isinstance(error.__cause__, PasswordDeleteError):
            raise
    (directory / MARKER_FILE).unlink()


def _calling(action: str, call: Callable[[KeyringBackend], str | None]) -> str | None:
    from keyring.errors import KeyringError

    backend = find_keyring()
    try:
        return call(backend)
    except KeyringError as error:
        message = f"the system's keyring did not {action} the session token"
        raise CoderError("keyring", message, f"Unlock the keyring and retry. {_WITHOUT_KEYRING}") from error


_WITHOUT_KEYRING = "Without --use-keyring, `coder login` stores the token in a file that only you can read."


def find_keyring() -> KeyringBackend:
    """Return this system's keyring. Raise CoderError if there is none.

    The backend is imported by name: the library's search through installed packages finds none in a one-file program.
    """
    from keyring.core import load_env

    backend = load_env() or _system_keyring()
    if backend is None:
        raise CoderError("keyring", "this system has no keyring to store the session token", _WITHOUT_KEYRING)
    return backend


def _system_keyring() -> KeyringBackend | None:
    from keyring.backends import SecretService, Windows, macOS

    kinds = {"darwin": macOS.Keyring, "win32": Windows.WinVaultKeyring}
    kind = kinds.get(sys.platform, SecretService.Keyring)
    return kind() if kind.viable else None  # type: ignore[no-untyped-call]
