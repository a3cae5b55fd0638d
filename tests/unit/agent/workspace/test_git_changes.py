"""What git says has changed."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from coder.agent.workspace import git_changes
from coder.agent.workspace.git_changes import GitError, Repository, changes, find_repositories, scan

ENV = {
    "PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b.c", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b.c",
}  # fmt: skip


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], env=ENV, check=True, capture_output=True)


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    return folder


def test_where_repositories_are_looked_for(tmp_path: Path) -> None:
    outer = repository(tmp_path / "outer")
    near, deep = repository(outer / "near"), repository(outer / "a/deep")
    repository(outer / "a/b/too-deep")
    (outer / "worktree").mkdir()
    (outer / "worktree/.git").write_text("gitdir: elsewhere\n")
    assert find_repositories(outer) == [outer, near, outer / "worktree", deep]
    (outer / "plain").mkdir()
    assert find_repositories(outer / "plain") == [outer], "the one around it"
    assert find_repositories(tmp_path / "none") == []


async def test_a_repository_from_its_first_file_on(tmp_path: Path) -> None:
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
    (folder / "new").write_text("two\n")
    (folder / "other file").write_text("three\n")
    changed = (await scan(folder, ENV)).repositories
    assert all(line in changed[key].unified_diff for line in ("-one", "+two", "+three"))
    git(folder, "checkout", "-q", "--detach")
    assert len((await scan(folder, ENV)).repositories[key].branch) >= 7, "a commit where there is no branch"


async def test_large_changes_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_changes, "MAX_DIFF", 2000)
    folder = repository(tmp_path / "r")
    for number in range(5):
        (folder / f"f{number}").write_text("line\n" * 1000)
    diff = (await scan(folder, ENV)).repositories[str(folder)].unified_diff
    assert diff.endswith("[the rest of the changes is left out]\n") and len(diff) < 2100


def test_only_what_is_other_than_before_is_told() -> None:
    a, b = Repository("/a", "main"), Repository("/b", "main")
    assert changes({}, {"/a": a, "/b": b}) == [a, b]
    assert changes({"/a": a, "/b": b}, {"/a": a, "/b": b}) == []
    other = Repository("/b", "side")
    assert changes({"/a": a, "/b": b}, {"/b": other}) == [other, Repository("/a", removed=True)]
    assert Repository("/a", removed=True).row()["removed"] is True and "removed" not in a.row()


async def test_without_git_one_clear_word(tmp_path: Path) -> None:
    repository(tmp_path / "r")
    with pytest.raises(GitError, match="not installed"):
        await scan(tmp_path / "r", {"PATH": str(tmp_path)})


async def test_untracked_files_are_bounded_over_all_repositories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_changes, "MAX_UNTRACKED", 3)
    for name in ("a", "b", "c"):
        folder = repository(tmp_path / name)
        for number in range(2):
            (folder / f"f{number}").write_text("line\n")
    diffs = [one.unified_diff for one in (await scan(tmp_path, ENV)).repositories.values()]
    assert [diff.count("+line") for diff in diffs] == [2, 1, 0]
    assert ["is left out" in diff for diff in diffs] == [False, True, True]


async def test_a_repository_that_does_not_answer_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A git that stops at one of them."""
    repository(tmp_path / "a"), repository(tmp_path / "slow"), repository(tmp_path / "z")
    fake = tmp_path / "bin/git"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\ncase "$*" in *slow*) exec sleep 60;; esac\nPATH={ENV["PATH"]} exec git "$@"\n')
    fake.chmod(stat.S_IRWXU)
    monkeypatch.setattr(git_changes, "COMMAND_TIME", 0.5)
    found = await scan(tmp_path, {**ENV, "PATH": f"{fake.parent}:{ENV['PATH']}"})
    assert [Path(root).name for root in found.repositories] == ["a", "z"]
    assert [Path(root).name for root in found.errors] == ["slow"] and "longer than 0.5 s" in "".join(
        found.errors.values()
    )
