"""Dev containers that are described in the workspace's folders, whether or not anybody has built them."""

from __future__ import annotations

import os
from pathlib import Path

from coder.agent.devcontainers.commands import is_text

MAX_DEPTH = 4
MAX_FOLDERS = 4000
MAX_PROJECTS = 50
"""Ours: levels below the workspace's directory, folders that are looked into, descriptions that are shown."""
_SKIPPED = frozenset({"node_modules", "vendor", "target", "dist", "build", "venv", "__pycache__"})
"""Where others' projects lie, with descriptions of their own."""


def descriptions(folder: Path) -> list[Path]:
    """Those of one project, in the order the specification looks for them (containers.dev, devcontainer.json)."""
    below = folder / ".devcontainer"
    found = [below / "devcontainer.json", folder / ".devcontainer.json"]
    try:
        inner = sorted(entry.path for entry in os.scandir(below) if entry.is_dir(follow_symlinks=False))[:MAX_PROJECTS]
    except OSError:
        inner = []
    found += [Path(path) / "devcontainer.json" for path in inner]
    return [path for path in found if os.path.isfile(path)]  # noqa: PTH113 - pathlib's raises where one may not look


def find_projects(root: Path) -> list[tuple[str, str]]:
    """Folder and description of each project at `root` or below that is a repository and has one; blocks on the disk.

    Of a project with several descriptions the first counts.
    """
    waiting, seen = [(root, 0)], 0
    found: list[tuple[str, str]] = []
    while waiting and seen < MAX_FOLDERS and len(found) < MAX_PROJECTS:
        folder, depth = waiting.pop(0)
        seen += 1
        try:
            inner = sorted(
                entry.name
                for entry in os.scandir(folder)
                if entry.is_dir(follow_symlinks=False) and is_text(entry.name)
            )
        except OSError:
            continue  # gone, or not ours to read
        # pathlib's raises where one may not look
        if os.path.exists(folder / ".git") and (described := descriptions(folder)):  # noqa: PTH110
            found.append((str(folder), str(described[0])))
        if depth < MAX_DEPTH:
            waiting += [
                (folder / name, depth + 1) for name in inner if not name.startswith(".") and name not in _SKIPPED
            ]
    return found
