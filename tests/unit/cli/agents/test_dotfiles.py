"""`coder dotfiles` on real Git repositories: conflicts with files of the home; every case runs twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.programs.dotfiles import Dotfiles, LinkTo, create_dotfiles

DONE = "Dotfiles installation complete.\n"


@pytest.fixture
def dotfiles(tmp_path: Path) -> Dotfiles:
    return create_dotfiles(tmp_path)


async def test_links_files_into_directories(dotfiles: Dotfiles) -> None:
    dotfiles.commit({".bashrc": "b", ".vim/colors/x.vim": "v", "README.md": "r", "bin/tool": "t"})
    result = await dotfiles.link()
    assert result.code == 0 and result.stdout.endswith(DONE) and "Skipped" not in result.stderr
    assert dotfiles.leads_to_clone(".bashrc") and dotfiles.leads_to_clone(".vim/colors/x.vim")
    for made in (".vim", ".vim/colors"):
        assert not (dotfiles.home / made).is_symlink() and (dotfiles.home / made).stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in dotfiles.home.iterdir()) == [".bashrc", ".config", ".vim"]


async def test_config_keeps_clone_and_session(dotfiles: Dotfiles) -> None:
    """Most repositories have a `.config`, and the clone is in that of the home."""
    (dotfiles.home / ".config/other.conf").write_text("mine")
    dotfiles.commit({".config/foo": "a", ".config/nvim/init.lua": "n"})
    result = await dotfiles.link()
    assert result.code == 0 and "Moved" not in result.stdout and "Skipped" not in result.stderr
    assert not (dotfiles.home / ".config").is_symlink()
    assert dotfiles.leads_to_clone(".config/foo") and dotfiles.leads_to_clone(".config/nvim/init.lua")
    assert (dotfiles.home / ".config/other.conf").read_text() == "mine"
    assert (dotfiles.home / ".config/coderv2/session").read_text() == "the session"


async def test_config_directory_is_kept(dotfiles: Dotfiles) -> None:
    dotfiles.commit({".config/coderv2/session": "theirs", ".config/coderv2/dotfiles/x": "x", ".config/foo": "a"})
    result = await dotfiles.link()
    config = dotfiles.home / ".config/coderv2"
    assert result.code == 0 and dotfiles.leads_to_clone(".config/foo")
    assert f"Skipped {config}: it belongs to this program's configuration directory\n" in result.stderr
    assert (config / "session").read_text() == "the session"


async def test_clone_outside_config_is_unchanged(dotfiles: Dotfiles) -> None:
    clone = dotfiles.home / ".dots"
    dotfiles.commit({".dots/x": "x", ".bashrc": "b"})
    result = await dotfiles.link("--repo-dir", str(clone))
    assert result.code == 0 and (dotfiles.home / ".bashrc").readlink() == clone / ".bashrc"
    assert f"Skipped {clone}: it belongs to the clone of the repository\n" in result.stderr
    assert (clone / ".dots/x").read_text() == "x" and not (clone / "x").exists()


async def test_skips_links_into_clone(dotfiles: Dotfiles) -> None:
    dotfiles.commit({".bashrc": "b", ".vim/x": "v"})
    result = await dotfiles.link("--symlink-dir", str(dotfiles.clone))
    assert result.code == 0 and result.stderr.count("it belongs to the clone of the repository") == 2
    assert (dotfiles.clone / ".bashrc").read_text() == "b" and not (dotfiles.clone / ".bashrc").is_symlink()


async def test_ssh_keeps_other_files(dotfiles: Dotfiles) -> None:
    ssh = dotfiles.home / ".ssh"
    ssh.mkdir(0o700)
    (ssh / "id_ed25519").write_text("my key")
    (ssh / "authorized_keys").write_text("who may come in")
    dotfiles.commit({".ssh/authorized_keys": "theirs", ".ssh/config.d/work": "w"})
    result = await dotfiles.link()
    assert result.code == 0 and not ssh.is_symlink()
    assert (ssh / "id_ed25519").read_text() == "my key"
    assert dotfiles.leads_to_clone(".ssh/authorized_keys") and dotfiles.leads_to_clone(".ssh/config.d/work")
    (backup,) = ssh.glob("authorized_keys.bak-*")
    assert backup.read_text() == "who may come in"
    assert f"Moved {ssh / 'authorized_keys'} to {backup}\n" in result.stdout


async def test_conflicting_file_is_backed_up(dotfiles: Dotfiles) -> None:
    """A file and a directory conflict."""
    for name in (".bashrc", ".vim"):
        (dotfiles.home / name).write_text(f"old {name}")
    dotfiles.commit({".bashrc": "new", ".vim/x": "v"})
    result = await dotfiles.link()
    assert result.code == 0 and dotfiles.leads_to_clone(".bashrc") and dotfiles.leads_to_clone(".vim/x")
    for name in (".bashrc", ".vim"):
        (backup,) = dotfiles.home.glob(f"{name}.bak-*")
        assert backup.read_text() == f"old {name}"
        assert f"Moved {dotfiles.home / name} to {backup}\n" in result.stdout


async def test_conflicting_directory_is_kept(dotfiles: Dotfiles) -> None:
    (dotfiles.home / ".tool").mkdir()
    (dotfiles.home / ".tool/data").write_text("mine")
    dotfiles.commit({".tool": "t", ".config": "a file", ".zshrc": "z"})
    result = await dotfiles.link()
    assert result.code == 0 and dotfiles.leads_to_clone(".zshrc")
    for name in (".tool", ".config"):
        message = f"Skipped {dotfiles.home / name}: a directory is there, where the repository has a file\n"
        assert message in result.stderr
    assert (dotfiles.home / ".tool/data").read_text() == "mine"


async def test_a_linked_directory_is_followed(dotfiles: Dotfiles, tmp_path: Path) -> None:
    """Directories of a home can be on another disk."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk/mine").write_text("mine")
    (dotfiles.home / ".local").symlink_to(tmp_path / "disk")
    dotfiles.commit({".local/share/x": "x"})
    result = await dotfiles.link()
    assert result.code == 0
    assert f"{dotfiles.home / '.local'} is a link: linking into {tmp_path / 'disk'}\n" in result.stderr
    assert (dotfiles.home / ".local").readlink() == tmp_path / "disk" and (tmp_path / "disk/mine").exists()
    assert (tmp_path / "disk/share/x").readlink() == dotfiles.clone / ".local/share/x"


async def test_follows_config_on_another_disk(dotfiles: Dotfiles, tmp_path: Path) -> None:
    (dotfiles.home / ".config").rename(tmp_path / "disk")
    (dotfiles.home / ".config").symlink_to(tmp_path / "disk")
    dotfiles.commit({".config/foo": "a", ".config/coderv2/url": "theirs"})
    result = await dotfiles.link()
    assert result.code == 0 and (tmp_path / "disk/foo").readlink() == dotfiles.clone / ".config/foo"
    assert "it belongs to this program's configuration directory" in result.stderr
    assert not (tmp_path / "disk/coderv2/url").exists()


async def test_keeps_link_to_clone(dotfiles: Dotfiles, tmp_path: Path) -> None:
    (dotfiles.home / ".config").rename(tmp_path / "disk")
    (dotfiles.home / ".config").symlink_to(tmp_path / "disk")
    dotfiles.commit({".config": "a file"})
    result = await dotfiles.link()
    message = f"Skipped {dotfiles.home / '.config'}: it is a link that leads to the clone of the repository\n"
    assert result.code == 0 and message in result.stderr
    assert (dotfiles.home / ".config").readlink() == tmp_path / "disk"


async def test_keeps_whole_directory_link(dotfiles: Dotfiles) -> None:
    """Former versions linked whole directories."""
    (dotfiles.home / ".vim").symlink_to(dotfiles.clone / ".vim")
    dotfiles.commit({".vim/x": "v"})
    result = await dotfiles.link()
    assert result.code == 0 and dotfiles.leads_to_clone(".vim") and "Skipped" not in result.stderr


@pytest.mark.parametrize("led_to", ["/nowhere", "old-file"])
async def test_another_link_is_replaced(led_to: str, dotfiles: Dotfiles) -> None:
    """A file and a directory conflict."""
    (dotfiles.home / "old-file").write_text("old")
    for name in (".bashrc", ".vim"):
        (dotfiles.home / name).symlink_to(led_to)
    dotfiles.commit({".bashrc": "new", ".vim/x": "v"})
    result = await dotfiles.link()
    assert result.code == 0 and dotfiles.leads_to_clone(".bashrc") and dotfiles.leads_to_clone(".vim/x")
    for name in (".bashrc", ".vim"):
        assert f"Replaced {dotfiles.home / name}, a link to {led_to}\n" in result.stdout
    assert (dotfiles.home / "old-file").read_text() == "old"


async def test_links_repository_links(dotfiles: Dotfiles) -> None:
    """Links to a file, to a directory, to nothing, and outside the repository are not followed."""
    links = {".rc": "shared/rc", ".dir": "shared", ".gone": "nothing", ".out": "/etc", ".self": ".self", ".up": "."}
    dotfiles.commit({"shared/rc": "r", ".deep/link": LinkTo("../shared")})
    dotfiles.commit({name: LinkTo(target) for name, target in links.items()})
    result = await dotfiles.link()
    assert result.code == 0 and "Skipped" not in result.stderr
    assert all(dotfiles.leads_to_clone(name) for name in (*links, ".deep/link"))
    assert (dotfiles.home / ".rc").read_text() == (dotfiles.home / ".deep/link/rc").read_text() == "r"


async def test_skips_repository_link_to_its_target(dotfiles: Dotfiles) -> None:
    dotfiles.commit({".mine": LinkTo(str(dotfiles.home / ".mine")), ".rc": "r"})
    result = await dotfiles.link()
    assert f"Skipped {dotfiles.home / '.mine'}: the repository has a link to this path itself\n" in result.stderr
    assert result.code == 0 and dotfiles.leads_to_clone(".rc") and not (dotfiles.home / ".mine").is_symlink()


async def test_repository_link_moves_no_directory(dotfiles: Dotfiles) -> None:
    dotfiles.commit({".config": LinkTo("config"), "config/foo": "a"})
    result = await dotfiles.link()
    message = f"Skipped {dotfiles.home / '.config'}: a directory is there, where the repository has a link\n"
    assert result.code == 0 and message in result.stderr
    assert (dotfiles.home / ".config/coderv2/session").read_text() == "the session"


async def test_deep_directories_are_linked(dotfiles: Dotfiles) -> None:
    deep = f".a/{'d/' * 200}x"
    dotfiles.commit({deep: "x"})
    result = await dotfiles.link()
    assert result.code == 0 and dotfiles.leads_to_clone(deep)


async def test_read_only_target_is_reported(dotfiles: Dotfiles) -> None:
    """Even root cannot write to this directory of the kernel."""
    (dotfiles.home / ".fixed").symlink_to("/proc/sys")
    dotfiles.commit({".fixed/a": "a", ".fixed/b/c": "c", ".zshrc": "z"})
    result = await dotfiles.run()
    assert result.code == 1 and dotfiles.leads_to_clone(".zshrc")
    assert f"Not linked: {dotfiles.home / '.fixed/a'}: " in result.stderr
    assert f"Not linked: {dotfiles.home / '.fixed/b'}: " in result.stderr
    assert "2 of the dotfiles could not be linked" in result.stderr and DONE not in result.stdout


async def test_git_files_are_skipped(dotfiles: Dotfiles) -> None:
    dotfiles.commit({".gitconfig": "[user]", ".gitignore": "x", ".github/ci.yml": "c", ".gitmodules": ""})
    result = await dotfiles.link()
    assert result.code == 0
    assert sorted(path.name for path in dotfiles.home.iterdir()) == [".config", ".gitconfig"]


async def test_next_run_links_new_files(dotfiles: Dotfiles) -> None:
    dotfiles.commit({".config/one": "1"})
    await dotfiles.link()
    dotfiles.commit({".config/two": "2", ".config/one": "changed"})
    assert (await dotfiles.link()).code == 0
    assert (dotfiles.home / ".config/one").read_text() == "changed" and dotfiles.leads_to_clone(".config/two")
