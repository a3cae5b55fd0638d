"""What the agent's tests share: a home without the startup files of a developer."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def shells_start_without_files(empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent's shells read the startup files of HOME. Those of a developer take seconds, or a minute: `pyenv init`
    waits so long for a lock that stays behind when a test kills the shell that holds it."""
    monkeypatch.setenv("HOME", str(empty_home))
