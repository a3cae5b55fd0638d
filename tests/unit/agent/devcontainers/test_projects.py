"""Descriptions of dev containers in the workspace's folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from coder.agent.devcontainers import projects
from coder.agent.devcontainers.projects import find_projects


def _project(folder: Path, *files: str, repository: bool = True) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if repository:
        (folder / ".git").mkdir()
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("{}")


def test_repositories_with_description(tmp_path: Path) -> None:
    _project(tmp_path, ".devcontainer.json")
    _project(tmp_path / "api", ".devcontainer/devcontainer.json", ".devcontainer.json")
    _project(tmp_path / "a/b/ui", ".devcontainer/one/devcontainer.json", ".devcontainer/two/devcontainer.json")
    _project(tmp_path / "plain")
    _project(tmp_path / "loose", ".devcontainer.json", repository=False)
    _project(tmp_path / "api/node_modules/other", ".devcontainer.json")
    _project(tmp_path / ".cache/other", ".devcontainer.json")
    _project(tmp_path / "1/2/3/4/5", ".devcontainer.json")
    (tmp_path / "again").symlink_to(tmp_path)
    assert find_projects(tmp_path) == [
        (str(tmp_path), str(tmp_path / ".devcontainer.json")),
        (str(tmp_path / "api"), str(tmp_path / "api/.devcontainer/devcontainer.json")),
        (str(tmp_path / "a/b/ui"), str(tmp_path / "a/b/ui/.devcontainer/one/devcontainer.json")),
    ]


def test_large_home_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projects, "MAX_FOLDERS", 20)
    for number in range(50):
        _project(tmp_path / f"p{number:02}", ".devcontainer.json")
    assert len(find_projects(tmp_path)) == 19
    assert find_projects(tmp_path / "nowhere") == []
