"""What has changed in the repositories of a workspace since their last commits, as the git command says it.

Repositories are those at, above and up to two levels below the workspace's directory. Everything is bounded: a
repository of a hundred gigabytes is somebody's daily work.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import trio

MAX_REPOSITORIES = 32
MAX_DIFF = 1 << 20
MAX_UNTRACKED = 100
"""Ours: of all repositories together; each file is a git command."""
COMMAND_TIME = 30.0
"""Ours: seconds for one git command."""
_LOOKED_AT = 500
"""Ours: folders that are asked whether they are a repository."""
_LEFT_OUT = "\n[the rest of the changes is left out]\n"


@dataclass(frozen=True, slots=True)
class Repository:
    """One of them now; `removed` when it was there before and is not any more."""

    repo_root: str
    branch: str = ""
    remote_origin: str = ""
    unified_diff: str = ""
    removed: bool = False

    def row(self) -> dict[str, Any]:
        found = asdict(self)
        return found if self.removed else {name: value for name, value in found.items() if name != "removed"}


@dataclass(slots=True)
class Scan:
    """What one look at all repositories has found."""

    repositories: dict[str, Repository] = field(default_factory=dict)
    "By their root."
    errors: dict[str, str] = field(default_factory=dict)
    "What is wrong with those that are there and cannot be read, by their root; for a person."
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    untracked_left: int = MAX_UNTRACKED


class GitError(Exception):
    """git cannot be asked anywhere; its text is for a person."""


class RepositoryError(GitError):
    """This repository cannot be read; others may."""


def find_repositories(directory: Path) -> list[Path]:
    """In a stable order, the one around the directory first."""
    found = [one for one in (directory, *directory.parents) if _is_repository(one)][:1]
    looked = 0
    for pattern in ("*", "*/*"):
        for folder in sorted(islice(directory.glob(pattern), _LOOKED_AT)):
            looked += 1
            if looked > _LOOKED_AT or len(found) >= MAX_REPOSITORIES:
                return found
            if folder not in found and _is_repository(folder):
                found.append(folder)
    return found


def _is_repository(folder: Path) -> bool:
    return os.path.exists(folder / ".git")  # noqa: PTH110 - pathlib's raises where one may not look


async def scan(directory: Path, env: Mapping[str, str]) -> Scan:
    """All repositories, one after the other. Raises GitError when none can be asked."""
    found = Scan(untracked_left=MAX_UNTRACKED)
    for root in await trio.to_thread.run_sync(find_repositories, directory, abandon_on_cancel=True):
        try:
            found.repositories[str(root)] = await _look(root, env, found)
        except RepositoryError as error:
            found.errors[str(root)] = str(error)
    return found


def changes(before: Mapping[str, Repository], now: Mapping[str, Repository]) -> list[Repository]:
    """Those that are new or other than before, and those that are gone."""
    changed = [one for root, one in now.items() if before.get(root) != one]
    return changed + [Repository(root, removed=True) for root in before if root not in now]


async def _look(root: Path, env: Mapping[str, str], scan: Scan) -> Repository:
    """Takes from what the scan has left of untracked files. Raises GitError."""
    git = _Git(root, env)
    branch = (await git("symbolic-ref", "--short", "-q", "HEAD")).strip()
    has_commit = bool(await git("rev-parse", "-q", "--verify", "HEAD"))
    # Before the first commit: the empty tree, whose name depends on the repository's hash.
    against = "HEAD" if has_commit else (await git("hash-object", "-t", "tree", "/dev/null")).strip()
    plain = ("--no-color", "--no-ext-diff", "--no-textconv")
    diff = await git("diff", *plain, against)
    untracked = (await git("ls-files", "--others", "--exclude-standard", "-z")).split("\0")
    rest = ""
    for name in filter(None, untracked):
        if len(diff) >= MAX_DIFF or scan.untracked_left <= 0:
            rest = _LEFT_OUT
            break
        scan.untracked_left -= 1
        diff += await git("diff", *plain, "--no-index", "--", "/dev/null", name)
    return Repository(
        str(root),
        branch or (await git("rev-parse", "-q", "--short", "HEAD")).strip(),
        (await git("config", "--get", "remote.origin.url")).strip(),
        diff + rest if len(diff) <= MAX_DIFF else diff[:MAX_DIFF] + _LEFT_OUT,
    )


class _Git:
    """git in one repository, changing nothing there."""

    def __init__(self, root: Path, env: Mapping[str, str]) -> None:
        self._root = root
        self._env = {**env, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}

    async def __call__(self, *words: str) -> str:
        """What it prints, bounded. A refusal is an empty text: no branch, no remote, no commit yet."""
        argv = ["git", "-c", "core.fsmonitor=false", "-C", str(self._root), *words]
        try:
            with trio.fail_after(COMMAND_TIME):
                return await self._read(argv)
        except FileNotFoundError as error:
            raise GitError("git is not installed in this workspace") from error
        except OSError as error:
            raise GitError(f"git cannot be started: {error.strerror}") from error
        except trio.TooSlowError as error:
            raise RepositoryError(f"git {words[0]} took longer than {COMMAND_TIME:g} s in {self._root}") from error

    async def _read(self, argv: list[str]) -> str:
        taken = bytearray()
        process = await trio.lowlevel.open_process(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self._env
        )
        try:
            assert process.stdout is not None  # noqa: S101 - asked for
            async with process.stdout:
                while len(taken) <= MAX_DIFF and (chunk := await process.stdout.receive_some()):
                    taken += chunk
            await process.wait()  # with its output closed it ends by itself
        finally:
            if process.returncode is None:
                process.kill()
                with trio.CancelScope(shield=True):
                    await process.wait()
        return taken.decode("utf-8", "replace")
