"""A home with this program's configuration, and a Git repository of dotfiles."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.kit.programs.command_line import Result, run_cli

GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


@dataclass(frozen=True)
class LinkTo:
    """Symbolic link in the repository."""

    target: str


def create_dotfiles(directory: Path) -> Dotfiles:
    """Create both in `directory`: the home is logged in, the repository is empty."""
    made = Dotfiles(directory / "home", directory / "repository")
    (made.home / ".config/coderv2").mkdir(parents=True)
    (made.home / ".config/coderv2/session").write_text("the session")
    made.repository.mkdir()
    made.git("init", "-q", "-b", "main")
    return made


@dataclass
class Dotfiles:
    """Create a home with this program's configuration, and a repository."""

    home: Path
    repository: Path

    @property
    def clone(self) -> Path:
        return self.home / ".config/coderv2/dotfiles"

    def commit(self, files: Mapping[str, str | LinkTo]) -> None:
        for name, content in files.items():
            path = self.repository / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, LinkTo):
                path.symlink_to(content.target)
            else:
                path.write_text(content)
        self.git("add", "-A")
        self.git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "x")

    def git(self, *words: str) -> None:
        subprocess.run(["git", *words], cwd=self.repository, env=os.environ | GIT, check=True)

    async def run(self, *words: str, env: Mapping[str, str] | None = None) -> Result:
        return await self.run_from(str(self.repository), *words, env=env)

    async def run_from(self, url: str, *words: str, env: Mapping[str, str] | None = None) -> Result:
        return await run_cli(["dotfiles", url, "-y", *words], home=self.home, env=GIT | dict(env or {}))

    async def link(self, *words: str) -> Result:
        """Run it twice: the second run must change nothing. Return the output of the first."""
        first = await self.run(*words)
        after = self.state()
        second = await self.run(*words)
        assert self.state() == after
        assert "Moved" not in second.stdout and "Replaced" not in second.stdout
        assert second.code == first.code
        return first

    def state(self) -> dict[str, str]:
        """Return the home's files by path, without Git's own: contents of files, targets of links."""
        found: dict[str, str] = {}
        for folder, directories, files in os.walk(self.home):
            directories[:] = [name for name in directories if name != ".git"]
            for name in [*directories, *files]:
                path = Path(folder, name)
                content = "" if path.is_dir() else path.read_text() if path.is_file() else "?"
                found[str(path)] = f"-> {path.readlink()}" if path.is_symlink() else content
        return found

    def leads_to_clone(self, name: str, within: str = "") -> bool:
        path = self.home / (within or name)
        return path.is_symlink() and path.readlink() == self.clone / name
