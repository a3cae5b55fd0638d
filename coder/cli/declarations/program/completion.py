"""Declarations of `coder completion` and its commands."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options, option

SHELLS = ("bash", "fish", "zsh", "powershell")


class CompletionOptions(Options):
    """Options of `coder completion`."""

    shell: str = option(
        "",
        "Shell to install completion for; defaults to the calling shell.",
        short="s",
        choices=SHELLS,
    )
    print: bool = option(
        False,
        "Print the completion script instead of writing it to the shell's own file.",
        short="p",
    )


COMPLETION = Command(
    words="completion",
    summary="Install or update shell completion scripts for the detected or chosen shell.",
    options=CompletionOptions,
    max_args=0,
    examples=(
        ("Set up completion for your current shell", "coder completion"),
        ("Print the script for another shell", "coder completion --shell fish --print"),
    ),
)

WORDS = Command(
    words="completion words",
    summary="List completions for a partial command line",
    options=Options,
    usage="-- [word...]",
    raw_after=0,
    examples=(("List the commands that start with wo", "coder completion words wo"),),
)
