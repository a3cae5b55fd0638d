"""Changes reported by git."""

from __future__ import annotations

import os
import stat
import subprocess
import time
from pathlib import Path

import pytest
import trio
import trio.testing

from coder.agent.workspace import git_changes
from coder.agent.workspace.git_changes import GitError, Repository, changes, find_repositories, scan

ENV = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b.c",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b.c",
}


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], env=ENV, check=True, capture_output=True)


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    return folder


def test_repository_search(tmp_path: Path) -> None:
    outer = repository(tmp_path / "outer")
    near, deep = repository(outer / "near"), repository(outer / "a/deep")
    repository(outer / "a/b/too-deep")
    (outer / "worktree").mkdir()
    (outer / "worktree/.git").write_text("gitdir: elsewhere\n")
    assert find_repositories(outer) == [outer, near, outer / "worktree", deep]
    (outer / "plain").mkdir()
    assert find_repositories(outer / "plain") == [outer], "the enclosing repository"
    assert find_repositories(tmp_path / "none") == []


async def test_repository_from_first_file(tmp_path: Path) -> None:
    folder = repository(tmp_path / "r")
    (folder / "new").write_text("one\n")
    key = str(folder)
    first = (await scan(folder, ENV)).repositories
    assert (first[key].branch, first[key].remote_origin) == ("main", "")
    assert "+one" in first[key].unified_diff and "new file" in first[key].unified_diff
    git(folder, "add", "new")
    git(folder, "commit", "-q", "-m", "x")
    git(folder, "remote", "add", "origin", "https://example.com/r.git")
    clean = (await scan(folder, ENV)).repositories
    assert clean[key] == Repository(key, "main", "https://example.com/r.git", "")
    git(folder, "remote", "set-url", "origin", "https://user:s3cret@example.com/r.git")
    assert (await scan(folder, ENV)).repositories[key].remote_origin == "https://example.com/r.git"
    (folder / "new").write_text("two\n")
    (folder / "other file").write_text("three\n")
    changed = (await scan(folder, ENV)).repositories
    assert all(line in changed[key].unified_diff for line in ("-one", "+two", "+three"))
    git(folder, "checkout", "-q", "--detach")
    assert len((await scan(folder, ENV)).repositories[key].branch) >= 7, "a detached HEAD reports its commit"


async def test_large_changes_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_changes, "MAX_DIFF", 2000)
    folder = repository(tmp_path / "r")
    for number in range(5):
        (folder / f"f{number}").write_text("line\n" * 1000)
    diff = (await scan(folder, ENV)).repositories[str(folder)].unified_diff
    assert diff.endswith("[the rest of the changes is left out]\n") and len(diff) < 2100


def test_only_changes_are_reported() -> None:
    a, b = Repository("/a", "main"), Repository("/b", "main")
    assert changes({}, {"/a": a, "/b": b}) == [a, b]
    assert changes({"/a": a, "/b": b}, {"/a": a, "/b": b}) == []
    other = Repository("/b", "side")
    assert changes({"/a": a, "/b": b}, {"/b": other}) == [other, Repository("/a", removed=True)]
    assert Repository("/a", removed=True).row()["removed"] is True and "removed" not in a.row()


async def test_missing_git_is_reported(tmp_path: Path) -> None:
    repository(tmp_path / "r")
    with pytest.raises(GitError, match="not installed"):
        await scan(tmp_path / "r", {"PATH": str(tmp_path)})


async def test_untracked_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_changes, "MAX_UNTRACKED", 3)
    for name in ("a", "b", "c"):
        folder = repository(tmp_path / name)
        for number in range(2):
            (folder / f"f{number}").write_text("line\n")
    diffs = [one.unified_diff for one in (await scan(tmp_path, ENV)).repositories.values()]
    assert [diff.count("+line") for diff in diffs] == [2, 1, 0]
    assert ["is left out" in diff for diff in diffs] == [False, True, True]


async def test_silent_repository_spares_others(tmp_path: Path, mock_clock: trio.testing.MockClock) -> None:
    """A git that blocks on one repository; time passes there alone."""
    repository(tmp_path / "a"), repository(tmp_path / "slow"), repository(tmp_path / "z")
    fake = tmp_path / "bin/git"
    fake.parent.mkdir()
    stops = f'case "$*" in *slow*) touch {tmp_path}/stands; exec sleep 600;; esac'
    fake.write_text(f'#!/bin/sh\n{stops}\nPATH={ENV["PATH"]} exec git "$@"\n')
    fake.chmod(stat.S_IRWXU)

    async def time_passes() -> None:
        while not (tmp_path / "stands").exists():
            await trio.to_thread.run_sync(time.sleep, 0.01)
        mock_clock.jump(git_changes.COMMAND_TIMEOUT)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(time_passes)
        found = await scan(tmp_path, {**ENV, "PATH": f"{fake.parent}:{ENV['PATH']}"})
    assert [Path(root).name for root in found.repositories] == ["a", "z"]
    assert [Path(root).name for root in found.errors] == ["slow"] and "longer than 30 s" in "".join(
        found.errors.values()
    )


PROGRAMS = {
    "filter.x.clean": "filter",
    "filter.x.smudge": "filter",
    "filter.x.process": "filter",
    "filter.x.required": "true",
    "filter.a.b.clean": "dotted",
    "diff.x.textconv": "textconv",
    "diff.x.command": "driver",
    "diff.external": "external",
    "core.fsmonitor": "monitor",
    "core.pager": "pager",
    "core.sshCommand": "ssh",
    "core.askPass": "ask",
    "credential.helper": "helper",
    "core.editor": "editor",
    "core.alternateRefsCommand": "refs",
    "diff.submodule": "log",
    "gpg.program": "gpg",
}
"Configuration that makes git start a program, with the name of the mark each program leaves."


def hostile(folder: Path, marks: Path, *where: str) -> None:
    """Create a repository whose configuration names programs wherever possible, and gives git reasons to start them."""
    for key, name in PROGRAMS.items():
        program = marks.with_suffix(f".{name}")
        program.write_text(f"#!/bin/sh\ntouch {marks}/{name}\ncat\n")
        program.chmod(stat.S_IRWXU)
        git(folder, "config", *where, key, str(program) if name not in {"true", "log"} else name)
    hook = folder / ".git/hooks/post-index-change"
    if hook.parent.is_dir():
        hook.write_text(f"#!/bin/sh\ntouch {marks}/hook\n")
        hook.chmod(stat.S_IRWXU)


def give_reasons(folder: Path) -> None:
    (folder / ".gitattributes").write_text("*.x filter=x diff=x\n*.ab filter=a.b\n")
    for name in ("one.x", "two.ab", "same.x"):
        (folder / name).write_text("one\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "x")
    (folder / "one.x").write_text("two\n")
    (folder / "two.ab").write_text("two\n")
    os.utime(folder / "same.x", (1, 1))
    (folder / "new.x").write_text("new\n")


@pytest.mark.parametrize("where", [(), ("--worktree",), ("--file", "included")])
async def test_repository_programs_never_run(tmp_path: Path, where: tuple[str, ...]) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    folder = repository(tmp_path / "r")
    give_reasons(folder)
    if where == ("--worktree",):
        git(folder, "config", "extensions.worktreeConfig", "true")
    if where[:1] == ("--file",):
        where = ("--file", str(folder / ".git/included"))
        git(folder, "config", "include.path", "included")
    hostile(folder, marks, *where)
    index = (folder / ".git/index").stat()
    found = await scan(folder, ENV)
    assert not found.errors and list(marks.iterdir()) == []
    diff = found.repositories[str(folder)].unified_diff
    assert all(line in diff for line in ("+two", "+new")) and "same.x" not in diff
    assert (folder / ".git/index").stat().st_mtime_ns == index.st_mtime_ns, "the repository is unchanged"
    subprocess.run(["git", "-C", str(folder), "diff", "HEAD"], env=ENV, check=False, capture_output=True)
    assert "filter" in {mark.name for mark in marks.iterdir()}, "git itself would have run them"


async def test_user_filters_still_run(tmp_path: Path) -> None:
    own = tmp_path / "gitconfig"
    own.write_text('[filter "x"]\n\tclean = sed s/two/three/\n')
    folder = repository(tmp_path / "r")
    give_reasons(folder)
    found = await scan(folder, {**ENV, "GIT_CONFIG_GLOBAL": str(own)})
    assert "+three" in found.repositories[str(folder)].unified_diff


async def test_submodule_programs_never_run(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    inner, outer = repository(tmp_path / "inner"), repository(tmp_path / "outer")
    give_reasons(inner)
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "a/b/c/module")
    git(outer, "commit", "-q", "-m", "x")
    module = outer / "a/b/c/module"
    (module / "one.x").write_text("three\n")
    git(module, "commit", "-q", "--allow-empty", "-m", "moved")
    hostile(module, marks)
    hostile(outer, marks)
    found = await scan(outer, ENV)
    assert list(marks.iterdir()) == [] and "Subproject commit" in found.repositories[str(outer)].unified_diff


@pytest.mark.parametrize("names", [["a=b"], [f"f{number}" for number in range(65)], ["n" * 5000]])
async def test_undisableable_filters_reject_repository(tmp_path: Path, names: list[str]) -> None:
    folder = repository(tmp_path / "r")
    with (folder / ".git/config").open("a") as config:
        config.writelines(f'[filter "{name}"]\n\tclean = false\n' for name in names)
    found = await scan(folder, ENV)
    assert not found.repositories and "cannot be disabled" in found.errors[str(folder)]


async def test_old_git_disables_all_filters(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    folder = repository(tmp_path / "r")
    give_reasons(folder)
    hostile(folder, marks)
    old = tmp_path / "bin/git"
    old.parent.mkdir()
    old.write_text(f'#!/bin/sh\ncase "$*" in *--show-scope*) exit 129;; esac\nPATH={ENV["PATH"]} exec git "$@"\n')
    old.chmod(stat.S_IRWXU)
    found = await scan(folder, {**ENV, "PATH": f"{old.parent}:{ENV['PATH']}"})
    assert "+two" in found.repositories[str(folder)].unified_diff and list(marks.iterdir()) == []


async def test_partial_clone_fetches_nothing(tmp_path: Path) -> None:
    full = repository(tmp_path / "elsewhere/full")
    give_reasons(full)
    git(full, "config", "uploadpack.allowFilter", "true")
    part = tmp_path / "part"
    git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{full}", str(part))
    git(full, "commit", "-q", "-a", "-m", "more")
    git(part, "fetch", "-q")
    git(part, "update-ref", "HEAD", "origin/main")
    before = sorted((part / ".git/objects").rglob("*"))
    found = await scan(part, ENV)
    assert sorted((part / ".git/objects").rglob("*")) == before
    assert "git diff cannot read" in found.errors[str(part)]


async def test_slow_command_group_is_killed(tmp_path: Path, mock_clock: trio.testing.MockClock) -> None:
    """Programs that git has started, too: time passes once they have the pipe open."""
    repository(tmp_path / "r")
    fake, pipe = tmp_path / "bin/git", tmp_path / "pipe"
    os.mkfifo(pipe)
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\n{{ echo; exec sleep 600; }} > {pipe} &\nwait\n")
    fake.chmod(stat.S_IRWXU)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    async def time_passes() -> None:
        await trio.lowlevel.wait_readable(reading)
        assert os.read(reading, 1) == b"\n"
        mock_clock.jump(git_changes.COMMAND_TIMEOUT)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(time_passes)
        found = await scan(tmp_path / "r", {**ENV, "PATH": f"{fake.parent}:{ENV['PATH']}"})
    assert found.errors
    await trio.lowlevel.wait_readable(reading)
    assert os.read(reading, 1) == b"", "no process has it open"
    os.close(reading)


async def test_unreadable_file_spares_diff(tmp_path: Path) -> None:
    """A git that is denied one file, for any user who runs the tests."""
    folder = repository(tmp_path / "r")
    for name in ("a", "secret", "z"):
        (folder / name).write_text(f"{name}\n")
    fake = tmp_path / "bin/git"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\ncase "$*" in *"null secret") exit 128;; esac\nPATH={ENV["PATH"]} exec git "$@"\n')
    fake.chmod(stat.S_IRWXU)
    found = await scan(folder, {**ENV, "PATH": f"{fake.parent}:{ENV['PATH']}"})
    diff = found.repositories[str(folder)].unified_diff
    assert not found.errors and "+a" in diff and "+z" in diff and "+secret" not in diff


async def test_multibyte_diff_is_cut(tmp_path: Path) -> None:
    """Letters of three bytes: the limit counts bytes, the result has letters."""
    folder = repository(tmp_path / "r")
    (folder / "text").write_text("a\n")
    git(folder, "add", "text")
    git(folder, "commit", "-q", "-m", "x")
    (folder / "text").write_text("文字の長い行\n" * 200_000, encoding="utf-8")
    found = await scan(folder, ENV)
    assert not found.errors
    diff = found.repositories[str(folder)].unified_diff
    assert "+文字の長い行" in diff and diff.endswith(git_changes._LEFT_OUT)
    assert len(diff.encode()) < git_changes.MAX_DIFF + (128 << 10)
