"""Dev containers that are described in the workspace's folders, built or not."""

from __future__ import annotations

import os
from pathlib import Path

from coder.agent.devcontainers.commands import is_text

MAX_DEPTH = 4
MAX_FOLDERS = 4000
MAX_PROJECTS = 50
"""Limits (ours): levels below the workspace's directory, folders scanned, descriptions listed."""
_SKIPPED = frozenset({"node_modules", "vendor", "target", "dist", "build", "venv", "__pycache__"})
"""Folders that hold other people's projects, with descriptions of their own."""


def descriptions(folder: Path) -> list[Path]:
    """Return the descriptions of one project, in the order of the specification (containers.dev, devcontainer.json)."""
    below = folder / ".devcontainer"
    result = [below / "devcontainer.json", folder / ".devcontainer.json"]
    try:
        inner = sorted(entry.path for entry in os.scandir(below) if entry.is_dir(follow_symlinks=False))[:MAX_PROJECTS]
    except OSError:
        inner = []
    result += [Path(path) / "devcontainer.json" for path in inner]
    return [path for path in result if os.path.isfile(path)]  # noqa: PTH113 - pathlib's raises where one may not look


def find_projects(root: Path) -> list[tuple[str, str]]:
    """Return folder and description of each repository at `root` or below that has a description; blocks on the disk.

    A project with several descriptions counts with the first.
    """
    queue, scanned = [(root, 0)], 0
    result: list[tuple[str, str]] = []
    while queue and scanned < MAX_FOLDERS and len(result) < MAX_PROJECTS:
        folder, depth = queue.pop(0)
        scanned += 1
        try:
            inner = sorted(
                entry.name
                for entry in os.scandir(folder)
                if entry.is_dir(follow_symlinks=False) and is_text(entry.name)
            )
        except OSError:
            continue  # removed, or not readable
        # pathlib's raises where access is denied
        if os.path.exists(folder / ".git") and (configs := descriptions(folder)):  # noqa: PTH110
            result.append((str(folder), str(configs[0])))
        if depth < MAX_DEPTH:
            queue += [(folder / name, depth + 1) for name in inner if not name.startswith(".") and name not in _SKIPPED]
    return result
