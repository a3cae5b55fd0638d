"""What has changed in the repositories of a workspace since their last commits, as the git command says it.

Repositories are those at, above and up to two levels below the workspace's directory. Everything is bounded: a
repository of a hundred gigabytes is somebody's daily work. And nothing of a repository is trusted: whoever made it
wrote its configuration, which may name programs (git-config(1)); none of them is run.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import trio

from coder.agent.disk import FolderThreads, on_disk
from coder.agent.workspace.children import end_group

MAX_REPOSITORIES = 32
MAX_DIFF = 1 << 20
MAX_UNTRACKED = 100
"""Ours: of all repositories together; each file is a git command."""
COMMAND_TIME = 30.0
"""Ours: seconds for one git command."""
MAX_FILTERS = 64
MAX_FILTER_NAMES = 4096
"""Ours: filters of one repository that are switched off, and characters of their names; each is three words of every
command line."""
_LOOKED_AT = 500
"""Ours: folders that are asked whether they are a repository."""
_SWITCHED_OFF = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "diff.autoRefreshIndex=false")
"""Of every command: two programs, and the index that `git diff` writes anew under a lock which others would meet."""
_PLAIN = ("--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty", "--submodule=short")
"""Of every diff: programs, and the commands that git runs inside submodules, which have configurations of their own."""
_USAGE = 129
"""git's exit status for an option it does not know."""
_OWN_SCOPES = frozenset({"system", "global", "command"})
"""Of the configuration of who works here, rather than of who made the repository."""
_OFFLINE = {"GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1"}
"""A partial clone would fetch what it lacks. The second is known since git 2.44 and the clearer word."""
_THREADS = FolderThreads(1)
"""By directory, however long somebody watches."""
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


class _Said(NamedTuple):
    """What one command said. One of which the end was left out did not end by itself: its status says nothing."""

    status: int
    text: str
    is_cut: bool


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
    try:
        with trio.fail_after(COMMAND_TIME):
            roots = await on_disk(find_repositories, directory, limiter=_THREADS.of(directory))
    except trio.TooSlowError as error:
        raise GitError(f"{directory} was not searched for repositories within {COMMAND_TIME:g} s") from error
    except OSError as error:
        raise GitError(f"{directory} was not searched for repositories: {error.strerror}") from error
    for root in roots:
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
    await git.switch_filters_off()
    branch = (await git("symbolic-ref", "--short", "-q", "HEAD")).strip()
    has_commit = bool(await git("rev-parse", "-q", "--verify", "HEAD"))
    # Before the first commit: the empty tree, whose name depends on the repository's hash.
    against = "HEAD" if has_commit else (await git("hash-object", "-t", "tree", "/dev/null")).strip()
    tracked = await git.ask("diff", *_PLAIN, against)
    diff = tracked.text
    untracked = (await git("ls-files", "--others", "--exclude-standard", "-z")).split("\0")
    rest = _LEFT_OUT if tracked.is_cut else ""
    for name in filter(None, untracked):
        if rest or len(diff) >= MAX_DIFF or scan.untracked_left <= 0:
            rest = _LEFT_OUT
            break
        scan.untracked_left -= 1
        # One that may not be read, or has gone meanwhile, costs its own part.
        diff += await git.or_nothing("diff", *_PLAIN, "--no-index", "--", "/dev/null", name)
    return Repository(
        str(root),
        branch or (await git("rev-parse", "-q", "--short", "HEAD")).strip(),
        (await git("config", "--get", "remote.origin.url")).strip(),
        diff + rest if len(diff) <= MAX_DIFF else diff[:MAX_DIFF] + _LEFT_OUT,
    )


class _Git:
    """git in one repository, changing nothing there and running nothing that the repository names."""

    def __init__(self, root: Path, env: Mapping[str, str]) -> None:
        self._root = root
        self._env = {**env, **_OFFLINE, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        self._switched_off: tuple[str, ...] = _SWITCHED_OFF

    async def __call__(self, *words: str) -> str:
        """What it prints, bounded. A refusal is an empty text: no branch, no remote, no commit yet."""
        return (await self.ask(*words)).text

    async def ask(self, *words: str) -> _Said:
        """The same, and whether all of it."""
        said = await self._run(words)
        if said.status not in {0, 1} and not said.is_cut:
            raise RepositoryError(f"git {words[0]} cannot read {self._root}: it ended with {said.status}")
        return said

    async def or_nothing(self, *words: str) -> str:
        """What it prints, whatever becomes of it. Raises GitError all the same when it takes too long."""
        return (await self._run(words)).text

    async def switch_filters_off(self) -> None:
        """Those of gitattributes(5) that the repository's own configuration names, whatever it includes.

        Filters of the person (Git LFS) stay: they run with every command of theirs. Raises RepositoryError for names
        that cannot be given on a command line.
        """
        asked = ("--name-only", "-z", "--get-regexp", r"^filter\.")
        said = await self._run(("config", "--show-scope", *asked))
        scopes_and_keys = said.text.split("\0")
        if said.status == _USAGE:  # before git 2.26 there are no scopes: all are switched off
            said = await self._run(("config", *asked))
            scopes_and_keys = [part for key in said.text.split("\0") for part in ("", key)]
        pairs = zip(scopes_and_keys[::2], scopes_and_keys[1::2], strict=False)
        names = sorted({_filter_name(key) for scope, key in pairs if scope not in _OWN_SCOPES and key})
        length = sum(map(len, names))
        if len(names) > MAX_FILTERS or length > MAX_FILTER_NAMES or said.is_cut or "=" in "".join(names):
            raise RepositoryError(f"the configuration of {self._root} names filters that cannot be switched off")
        for name in names:
            self._switched_off += (
                f"filter.{name}.clean=",
                f"filter.{name}.process=",
                f"filter.{name}.required=false",
            )

    async def _run(self, words: Sequence[str]) -> _Said:
        """Raises GitError."""
        options = [word for one in self._switched_off for word in ("-c", one)]
        argv = ["git", *options, "-C", str(self._root), *words]
        try:
            with trio.fail_after(COMMAND_TIME):
                return await self._read(argv)
        except FileNotFoundError as error:
            raise GitError("git is not installed in this workspace") from error
        except OSError as error:
            raise GitError(f"git cannot be started: {error.strerror}") from error
        except trio.TooSlowError as error:
            raise RepositoryError(f"git {words[0]} took longer than {COMMAND_TIME:g} s in {self._root}") from error

    async def _read(self, argv: list[str]) -> _Said:
        taken = bytearray()
        process = await trio.lowlevel.open_process(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self._env,
            start_new_session=True,
        )
        try:
            assert process.stdout is not None  # noqa: S101 - asked for
            async with process.stdout:
                while len(taken) <= MAX_DIFF and (chunk := await process.stdout.receive_some()):
                    taken += chunk
            status = await process.wait()  # with its output closed it ends by itself
        finally:
            await end_group(process)
        return _Said(status, taken.decode("utf-8", "replace"), len(taken) > MAX_DIFF)


def _filter_name(key: str) -> str:
    """Of `filter.NAME.clean`; the name may have dots itself."""
    return key.removeprefix("filter.").rpartition(".")[0]
