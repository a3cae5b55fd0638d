"""A keyring for tests, in a file.

Set PYTHON_KEYRING_BACKEND=tests.kit.programs.file_keyring.FileKeyring and TEST_KEYRING to its path.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError


class FileKeyring(KeyringBackend):
    """What it holds stands in the file as JSON; locked while the file says `locked`."""

    priority = 1.0

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._path = Path(os.environ["TEST_KEYRING"])

    def _read(self) -> dict[str, str]:
        text = self._path.read_text() if self._path.exists() else "{}"
        if text == "locked":
            raise KeyringLocked("locked")
        found: dict[str, str] = json.loads(text)
        return found

    def get_password(self, service: str, username: str) -> str | None:
        return self._read().get(f"{service} {username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self._path.write_text(json.dumps(self._read() | {f"{service} {username}": password}))

    def delete_password(self, service: str, username: str) -> None:
        kept = self._read()
        if kept.pop(f"{service} {username}", None) is None:
            raise PasswordDeleteError("not there")
        self._path.write_text(json.dumps(kept))
