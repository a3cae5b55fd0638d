"""An installed program and a mirror of releases, for `coder upgrade`."""

from __future__ import annotations

from pathlib import Path

import pytest

from coder.cli.program import managed_program, upgrade
from tests.kit.programs.releases import NAME, NEWER, NEWEST, OLD, Mirror


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The installed program, in a folder of its own, on a machine without server, container or package."""
    found = tmp_path / "bin/coder"
    found.parent.mkdir()
    found.write_bytes(OLD)
    found.chmod(0o751)
    monkeypatch.setenv("CODER_SELF", str(found))
    monkeypatch.setenv("CODER_CONFIG_DIR", str(tmp_path / "config"))
    for name in ("CODER_RELEASE_LIST", "CODER_RELEASE_KEY", "GIT_SSH_COMMAND", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(managed_program, "CONTAINER_MARKS", ())
    monkeypatch.setattr(managed_program, "UNIT_FOLDERS", ())
    monkeypatch.setattr(upgrade, "find_service", lambda: None)
    monkeypatch.setattr(upgrade, "own_name", lambda: NAME)
    return found


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    found = Mirror(tmp_path / "mirror")
    found.add(NEWER, notes="Faster tunnels.", schema_revision="0035", published_at="2026-11-01")
    found.add(NEWEST, notes="Quieter logs.", notes_url="https://example.com/notes", schema_revision="0099")
    found.add("v2.37.0-rc.1", notes="Not for everyone.")
    return found
