"""`coder dotfiles` in a start script: failures of Git with a clone, changed URLs, damaged clones, SSH options."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from coder.cli.agents.dotfiles import _explain_start
from tests.kit.programs.dotfiles import Dotfiles, create_dotfiles

FAILED_UPDATE = "Failed to update repo, continuing...\n"


@pytest.fixture
def dotfiles(tmp_path: Path) -> Dotfiles:
    made = create_dotfiles(tmp_path)
    made.commit({".bashrc": "one"})
    return made


def backups(dotfiles: Dotfiles) -> list[Path]:
    return sorted(dotfiles.clone.parent.glob("dotfiles_backup_*"))


def _change_both(dotfiles: Dotfiles) -> None:
    (dotfiles.clone / ".bashrc").write_text("changed here")
    dotfiles.commit({".bashrc": "changed there"})


def _rewrite_history(dotfiles: Dotfiles) -> None:
    dotfiles.git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--amend", "-m", "other")


def _remove_repository(dotfiles: Dotfiles) -> None:
    shutil.rmtree(dotfiles.repository)


def _damage_clone(dotfiles: Dotfiles) -> None:
    (dotfiles.clone / ".git/HEAD").unlink()


def _lock_clone(dotfiles: Dotfiles) -> None:
    (dotfiles.clone / ".git/index.lock").touch()
    dotfiles.commit({".new": "n"})


def _detach_head(dotfiles: Dotfiles) -> None:
    (dotfiles.clone / ".git/HEAD").write_text((dotfiles.clone / ".git/refs/heads/main").read_text())


SOFT_FAILURES: list[Callable[[Dotfiles], None]] = [
    _change_both,
    _rewrite_history,
    _remove_repository,
    _damage_clone,
    _lock_clone,
    _detach_head,
]


@pytest.mark.parametrize("failure", SOFT_FAILURES)
async def test_failed_update_continues(failure: Callable[[Dotfiles], None], dotfiles: Dotfiles) -> None:
    assert (await dotfiles.run()).code == 0
    failure(dotfiles)
    (dotfiles.home / ".bashrc").unlink()
    result = await dotfiles.run()
    assert result.code == 0 and FAILED_UPDATE in result.stdout, result
    assert dotfiles.leads_to_clone(".bashrc") and not backups(dotfiles)


async def test_local_change_survives_update(dotfiles: Dotfiles) -> None:
    """An application edits a file through its link."""
    await dotfiles.run()
    (dotfiles.home / ".bashrc").write_text("changed here")
    dotfiles.commit({".zshrc": "z"})
    result = await dotfiles.run()
    assert result.code == 0 and FAILED_UPDATE not in result.stdout and dotfiles.leads_to_clone(".zshrc")
    assert (dotfiles.home / ".bashrc").read_text() == "changed here"


async def test_missing_git_continues(dotfiles: Dotfiles, tmp_path: Path) -> None:
    await dotfiles.run()
    (dotfiles.home / ".bashrc").unlink()
    result = await dotfiles.run(env={"PATH": str(tmp_path)})
    assert result.code == 0 and FAILED_UPDATE in result.stdout and dotfiles.leads_to_clone(".bashrc")


async def test_missing_git_fails_first_clone(dotfiles: Dotfiles, tmp_path: Path) -> None:
    result = await dotfiles.run(env={"PATH": str(tmp_path)})
    assert result.code == 1 and "git is not installed" in result.stderr


async def test_failed_first_clone_leaves_nothing(dotfiles: Dotfiles) -> None:
    before = dotfiles.state()
    result = await dotfiles.run_from(str(dotfiles.repository / "missing"))
    assert result.code == 1 and "git clone exited with code 128" in result.stderr
    assert dotfiles.state() == before


async def test_unknown_branch_continues(dotfiles: Dotfiles) -> None:
    await dotfiles.run()
    (dotfiles.home / ".bashrc").unlink()
    result = await dotfiles.run("--branch", "missing")
    assert result.code == 0 and "Failed to use branch missing, continuing...\n" in result.stdout
    assert dotfiles.leads_to_clone(".bashrc")


@pytest.mark.parametrize("name", ["branch", "tag"])
async def test_other_branch_is_checked_out(name: str, dotfiles: Dotfiles) -> None:
    await dotfiles.run()
    dotfiles.git("checkout", "-q", "-b", "work")
    dotfiles.commit({".work": "w"})
    dotfiles.git("tag", "tag")
    dotfiles.git("branch", "branch")
    dotfiles.git("checkout", "-q", "main")
    for _ in range(2):
        result = await dotfiles.run("--branch", name)
        assert result.code == 0 and "Failed" not in result.stdout and dotfiles.leads_to_clone(".work")


@pytest.mark.parametrize("files", [{}, {"README.md": "r"}], ids=["empty", "no dotfiles"])
async def test_nothing_to_link_succeeds(files: dict[str, str], tmp_path: Path) -> None:
    dotfiles = create_dotfiles(tmp_path)
    if files:
        dotfiles.commit(files)
    for _ in range(2):
        result = await dotfiles.run()
        assert result.code == 0
        assert result.stdout.endswith("No install scripts or dotfiles found, nothing to do.\n")


def other_repository(directory: Path) -> Dotfiles:
    (directory / "other").mkdir()
    other = create_dotfiles(directory / "other")
    other.commit({".bashrc": "two", ".vimrc": "v"})
    return other


async def test_changed_url_keeps_backup(dotfiles: Dotfiles, tmp_path: Path) -> None:
    await dotfiles.run()
    (dotfiles.clone / "mine").write_text("not committed")
    other = other_repository(tmp_path)
    for _ in range(2):
        result = await dotfiles.run_from(str(other.repository))
        assert result.code == 0 and (dotfiles.home / ".bashrc").read_text() == "two"
        assert dotfiles.leads_to_clone(".vimrc")
    (backup,) = backups(dotfiles)
    assert (backup / "mine").read_text() == "not committed" and (backup / ".git").is_dir()


async def test_unreachable_new_url_keeps_clone(dotfiles: Dotfiles, tmp_path: Path) -> None:
    await dotfiles.run()
    before = dotfiles.state()
    result = await dotfiles.run_from(str(tmp_path / "missing"))
    assert result.code == 1 and dotfiles.state() == before


async def test_two_repositories_keep_their_clones(dotfiles: Dotfiles, tmp_path: Path) -> None:
    """A team's repository and a user's, one after the other at each start."""
    other = other_repository(tmp_path)
    for _ in range(2):
        assert (await dotfiles.run()).code == 0
        assert (await dotfiles.run_from(str(other.repository), "--repo-dir", "team")).code == 0
    assert not backups(dotfiles) and not list(dotfiles.clone.parent.glob("team_backup_*"))


async def test_users_own_origin_is_kept(dotfiles: Dotfiles, tmp_path: Path) -> None:
    """A user clones by HTTPS and pushes by SSH."""
    await dotfiles.run()
    config = dotfiles.clone / ".git/config"
    config.write_text(config.read_text().replace(str(dotfiles.repository), str(tmp_path / "pushed")))
    result = await dotfiles.run()
    assert result.code == 0 and FAILED_UPDATE in result.stdout and not backups(dotfiles)
    assert str(tmp_path / "pushed") in config.read_text()


async def test_new_password_in_url_is_no_change(dotfiles: Dotfiles) -> None:
    """A template can pass the token of an external login, which is new at each start."""
    for token in ("one", "two"):
        result = await dotfiles.run_from(f"file://user:{token}@localhost{dotfiles.repository}")
        assert result.code == 0 and FAILED_UPDATE not in result.stdout
    assert not backups(dotfiles) and "user:two@" in (dotfiles.clone / ".git/config").read_text()


async def test_relative_path_is_no_change(dotfiles: Dotfiles) -> None:
    """Commands of tests run in the home."""
    for _ in range(2):
        assert (await dotfiles.run_from("../repository")).code == 0
    assert not backups(dotfiles)


async def test_directory_without_git_is_backed_up(dotfiles: Dotfiles) -> None:
    dotfiles.clone.mkdir()
    (dotfiles.clone / "mine").write_text("mine")
    assert (await dotfiles.run()).code == 0 and dotfiles.leads_to_clone(".bashrc")
    (backup,) = backups(dotfiles)
    assert (backup / "mine").read_text() == "mine"


async def test_empty_directory_is_used(dotfiles: Dotfiles) -> None:
    """A volume can be mounted there."""
    dotfiles.clone.mkdir()
    inode = dotfiles.clone.stat().st_ino
    assert (await dotfiles.run()).code == 0 and dotfiles.clone.stat().st_ino == inode


async def test_repository_above_is_unchanged(dotfiles: Dotfiles) -> None:
    """A home can be a repository itself."""
    await dotfiles.run()
    shutil.copytree(dotfiles.clone / ".git", dotfiles.home / ".git")
    before = (dotfiles.home / ".git/refs/heads/main").read_text()
    _damage_clone(dotfiles)
    dotfiles.commit({".new": "n"})
    assert (await dotfiles.run()).code == 0
    assert (dotfiles.home / ".git/refs/heads/main").read_text() == before
    assert not (dotfiles.home / ".new").exists()


async def test_script_without_permission_runs(dotfiles: Dotfiles) -> None:
    """The permission that this program adds does not hinder the next update."""
    for text in ("one", "two"):
        dotfiles.commit({"install.sh": f"#!/bin/sh\necho {text} > $HOME/installed\n"})
        result = await dotfiles.run()
        assert result.code == 0 and FAILED_UPDATE not in result.stdout
        assert (dotfiles.home / "installed").read_text() == f"{text}\n"


@pytest.mark.parametrize("command", ["", "{ssh} --mine"])
async def test_ssh_accepts_unknown_hosts(command: str, dotfiles: Dotfiles, tmp_path: Path) -> None:
    ssh = tmp_path / "bin/ssh"
    ssh.parent.mkdir()
    ssh.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/arguments\nexit 1\n')
    ssh.chmod(0o755)
    path = f"{ssh.parent}:{os.environ['PATH']}"
    await dotfiles.run_from(
        "git@example.com:me/dots",
        env={"PATH": path, "GIT_SSH_COMMAND": command.format(ssh=ssh), "GIT_SSH_VARIANT": "ssh"},
    )
    options = "-o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no"
    arguments = (tmp_path / "arguments").read_text()
    assert arguments.startswith(f"--mine {options}" if command else options) and "git@example.com" in arguments


async def test_script_without_shebang_runs(dotfiles: Dotfiles) -> None:
    dotfiles.commit({"install.sh": "echo ran > $HOME/installed\n"})
    assert (await dotfiles.run()).code == 0
    assert (dotfiles.home / "installed").read_text() == "ran\n"


@pytest.mark.parametrize(
    ("mode", "text", "hint"),
    [
        (0o644, "#!/bin/sh\n", "Make it executable in the repository"),
        (0o755, "#!/bin/sh\n", "mounted with noexec"),
        (0o755, "echo\n", "mounted with noexec"),
        (0o755, "", "mounted with noexec"),
        (0o755, "#!\n", "mounted with noexec"),
        (0o755, "#! /dev/null -x\n", "Its interpreter /dev/null is not a program"),
    ],
)
def test_refused_start_names_cause(mode: int, text: str, hint: str, tmp_path: Path) -> None:
    script = tmp_path / "install.sh"
    script.write_text(text)
    script.chmod(mode)
    reason, way_out = _explain_start(script, PermissionError(errno.EACCES, "Permission denied"))
    assert reason == "the install script install.sh cannot be started: Permission denied"
    assert hint in way_out


def test_unreadable_script_is_explained(tmp_path: Path) -> None:
    gone = tmp_path / "install.sh"
    reason, way_out = _explain_start(gone, PermissionError(errno.EACCES, "Permission denied"))
    assert "it cannot be read" in reason and "chmod u+rx" in way_out


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("#!/bin/sh\r\necho x\r\n", "install.sh cannot be started: its lines end as on Windows"),
        ("#! /usr/bin/absent -e\n", "install.sh cannot be started: its interpreter /usr/bin/absent -e does not exist"),
        ("#!/etc\n", "install.sh cannot be started: Permission denied"),
    ],
)
async def test_script_that_cannot_start_is_explained(script: str, reason: str, dotfiles: Dotfiles) -> None:
    dotfiles.commit({"install.sh": script})
    result = await dotfiles.run()
    assert result.code == 1 and reason in result.stderr
