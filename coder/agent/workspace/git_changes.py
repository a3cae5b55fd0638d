"""Changes in the repositories of a workspace since their last commits, from the git command.

Repositories are those at, above and up to two levels below the workspace's directory. Everything is bounded: some users
work in repositories of a hundred gigabytes. A repository is untrusted: its author wrote its configuration, which may
name programs (git-config(1)); none of them is run.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import trio

from coder.agent.disk import FolderThreads, on_disk
from coder.agent.platform import system
from coder.agent.workspace.children import end_group
from coder.base.json_types import JsonObject
from coder.net.masking import without_web_login

MAX_REPOSITORIES = 32
MAX_DIFF = 1 << 20
MAX_UNTRACKED = 100
"""Untracked files (ours) of all repositories together; each file costs a git command."""
COMMAND_TIMEOUT = 30.0
"""Seconds (ours) for one git command."""
MAX_FILTERS = 64
MAX_FILTER_NAMES = 4096
"""Filters of one repository that are disabled, and characters of their names (ours); each adds three arguments to every
command line."""
_MAX_FOLDERS = 500
"""Folders checked for a repository (ours)."""
_DISABLED = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "diff.autoRefreshIndex=false")
"""Settings of every command: they disable two programs, and the index update of `git diff`, whose lock would disturb
other git commands."""
_PLAIN = ("--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty", "--submodule=short")
"""Options of every diff: they disable programs, and commands in submodules, which have their own configuration."""
_USAGE = 129
"""Exit status of git for an unknown option."""
_OWN_SCOPES = frozenset({"system", "global", "command"})
"""Configuration scopes of the user rather than of the repository's author."""
_OFFLINE = {"GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1"}
"""Variables that prevent a partial clone from fetching missing objects. The second, more specific one works since git
2.44."""
_THREADS = FolderThreads(1)
"""Threads for each directory, however long a viewer watches."""
_LEFT_OUT = "\n[the rest of the changes is left out]\n"


@dataclass(frozen=True, slots=True)
class Repository:
    """State of one repository; `removed` when it existed before and has disappeared."""

    repo_root: str
    branch: str = ""
    remote_origin: str = ""
    unified_diff: str = ""
    removed: bool = False

    def row(self) -> JsonObject:
        fields = asdict(self)
        return fields if self.removed else {name: value for name, value in fields.items() if name != "removed"}


@dataclass(slots=True)
class Scan:
    """Result of one poll of all repositories."""

    repositories: dict[str, Repository] = field(default_factory=dict)
    "Repositories by root."
    errors: dict[str, str] = field(default_factory=dict)
    "Errors of unreadable repositories by root, as text for users."
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    untracked_left: int = MAX_UNTRACKED


class _Output(NamedTuple):
    """Output of one command. When the output was cut, the command did not exit normally and the status is
    meaningless."""

    status: int
    text: str
    is_cut: bool


class GitError(Exception):
    """git cannot be run at all; the text is for users."""


class RepositoryError(GitError):
    """This repository cannot be read; others may be readable."""


def find_repositories(directory: Path) -> list[Path]:
    """Return the repositories in a stable order, the enclosing one first."""
    result = [item for item in (directory, *directory.parents) if _is_repository(item)][:1]
    checked = 0
    for pattern in ("*", "*/*"):
        for folder in sorted(islice(directory.glob(pattern), _MAX_FOLDERS)):
            checked += 1
            if checked > _MAX_FOLDERS or len(result) >= MAX_REPOSITORIES:
                return result
            if folder not in result and _is_repository(folder):
                result.append(folder)
    return result


def _is_repository(folder: Path) -> bool:
    return os.path.exists(folder / ".git")  # noqa: PTH110 - pathlib's raises where access is denied


async def scan(directory: Path, env: Mapping[str, str]) -> Scan:
    """Read all repositories, one after the other. Raises GitError when none can be read."""
    result = Scan(untracked_left=MAX_UNTRACKED)
    try:
        with trio.fail_after(COMMAND_TIMEOUT):
            roots = await on_disk(find_repositories, directory, limiter=_THREADS.of(directory))
    except trio.TooSlowError as error:
        raise GitError(f"{directory} could not be searched for repositories within {COMMAND_TIMEOUT:g} s") from error
    except OSError as error:
        raise GitError(f"{directory} could not be searched for repositories: {error.strerror}") from error
    for root in roots:
        try:
            result.repositories[str(root)] = await _read_repository(root, env, result)
        except RepositoryError as error:
            result.errors[str(root)] = str(error)
    return result


def changes(before: Mapping[str, Repository], now: Mapping[str, Repository]) -> list[Repository]:
    """Return the repositories that are new or changed, and the removed ones."""
    changed = [item for root, item in now.items() if before.get(root) != item]
    return changed + [Repository(root, removed=True) for root in before if root not in now]


async def _read_repository(root: Path, env: Mapping[str, str], scan: Scan) -> Repository:
    """Read one repository; use up the scan's limit of untracked files. Raises GitError."""
    git = _Git(root, env)
    await git.disable_filters()
    branch = (await git("symbolic-ref", "--short", "-q", "HEAD")).strip()
    has_commit = bool(await git("rev-parse", "-q", "--verify", "HEAD"))
    # Before the first commit: the empty tree, whose name depends on the repository's hash.
    against = "HEAD" if has_commit else (await git("hash-object", "-t", "tree", "/dev/null")).strip()
    tracked = await git.run("diff", *_PLAIN, against)
    diff = tracked.text
    untracked = (await git("ls-files", "--others", "--exclude-standard", "-z")).split("\0")
    rest = _LEFT_OUT if tracked.is_cut else ""
    for name in filter(None, untracked):
        if rest or len(diff) >= MAX_DIFF or scan.untracked_left <= 0:
            rest = _LEFT_OUT
            break
        scan.untracked_left -= 1
        # An unreadable or removed file only omits its own part.
        diff += await git.output_or_empty("diff", *_PLAIN, "--no-index", "--", "/dev/null", name)
    return Repository(
        str(root),
        branch or (await git("rev-parse", "-q", "--short", "HEAD")).strip(),
        without_web_login((await git("config", "--get", "remote.origin.url")).strip()),
        diff + rest if len(diff) <= MAX_DIFF else diff[:MAX_DIFF] + _LEFT_OUT,
    )


class _Git:
    """git in one repository, without changing it and without running programs that the repository names."""

    def __init__(self, root: Path, env: Mapping[str, str]) -> None:
        self._root = root
        self._env = {**env, **_OFFLINE, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        self._disabled: tuple[str, ...] = _DISABLED

    async def __call__(self, *arguments: str) -> str:
        """Return the output, bounded; empty when git fails: no branch, no remote, no commit yet."""
        return (await self.run(*arguments)).text

    async def run(self, *arguments: str) -> _Output:
        """Run git; return output and whether it was cut. Raises GitError."""
        output = await self._run(arguments)
        if output.status not in {0, 1} and not output.is_cut:
            raise RepositoryError(f"git {arguments[0]} cannot read {self._root}: it exited with {output.status}")
        return output

    async def output_or_empty(self, *arguments: str) -> str:
        """Return the output, whatever the exit status. Raises GitError when the command takes too long."""
        return (await self._run(arguments)).text

    async def disable_filters(self) -> None:
        """Disable the filters of gitattributes(5) that the repository's own configuration names, includes included.

        The user's filters (Git LFS) stay: they run with every git command of the user. Raises RepositoryError for names
        that a command line cannot hold.
        """
        arguments = ("--name-only", "-z", "--get-regexp", r"^filter\.")
        output = await self._run(("config", "--show-scope", *arguments))
        scopes_and_keys = output.text.split("\0")
        if output.status == _USAGE:  # before git 2.26 there are no scopes: all filters are disabled
            output = await self._run(("config", *arguments))
            scopes_and_keys = [part for key in output.text.split("\0") for part in ("", key)]
        pairs = zip(scopes_and_keys[::2], scopes_and_keys[1::2], strict=False)
        names = sorted({_filter_name(key) for scope, key in pairs if scope not in _OWN_SCOPES and key})
        length = sum(map(len, names))
        if len(names) > MAX_FILTERS or length > MAX_FILTER_NAMES or output.is_cut or "=" in "".join(names):
            raise RepositoryError(f"the configuration of {self._root} names filters that cannot be disabled")
        for name in names:
            self._disabled += (
                f"filter.{name}.clean=",
                f"filter.{name}.process=",
                f"filter.{name}.required=false",
            )

    async def _run(self, arguments: Sequence[str]) -> _Output:
        """Raises GitError."""
        options = [word for item in self._disabled for word in ("-c", item)]
        argv = ["git", *options, "-C", str(self._root), *arguments]
        try:
            with trio.fail_after(COMMAND_TIMEOUT):
                return await self._read(argv)
        except FileNotFoundError as error:
            raise GitError("git is not installed in this workspace") from error
        except OSError as error:
            raise GitError(f"git cannot be started: {error.strerror}") from error
        except trio.TooSlowError as error:
            raise RepositoryError(
                f"git {arguments[0]} took longer than {COMMAND_TIMEOUT:g} s in {self._root}"
            ) from error

    async def _read(self, argv: list[str]) -> _Output:
        buffer = bytearray()
        process = await trio.lowlevel.open_process(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self._env,
            **system.START,
        )
        try:
            assert process.stdout is not None  # noqa: S101 - requested
            async with process.stdout:
                while len(buffer) <= MAX_DIFF and (chunk := await process.stdout.receive_some()):
                    buffer += chunk
            status = await process.wait()  # with its output closed it exits on its own
        finally:
            await end_group(process)
        return _Output(status, buffer.decode("utf-8", "replace"), len(buffer) > MAX_DIFF)


def _filter_name(key: str) -> str:
    """Return the NAME of `filter.NAME.clean`; the name may contain dots."""
    return key.removeprefix("filter.").rpartition(".")[0]
