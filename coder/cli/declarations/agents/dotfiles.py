"""Declaration of `coder dotfiles`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import YesOption, option


class DotfilesOptions(YesOption):
    """Options of `coder dotfiles`."""

    symlink_dir: str = option(
        "",
        "Directory for the symbolic links; defaults to your home.",
        env="CODER_SYMLINK_DIR",
    )
    branch: str = option(
        "",
        "Branch of the repository to check out; defaults to its default branch.",
        short="b",
    )
    repo_dir: str = option(
        "dotfiles",
        "Directory of the clone, below the configuration directory.",
        env="CODER_DOTFILES_REPO_DIR",
    )


DOTFILES = Command(
    words="dotfiles",
    summary="Personalize your workspace by applying a canonical dotfiles repository",
    options=DotfilesOptions,
    usage="<git_repo_url>",
    min_args=1,
    max_args=1,
    examples=(
        ("Apply your dotfiles to this workspace", "coder dotfiles git@github.com:alice/dotfiles.git"),
        ("Use a branch, without prompts", "coder dotfiles https://github.com/alice/dotfiles --branch laptop -y"),
    ),
)
