"""Declaration of `coder version`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options, output_option


class VersionOptions(Options):
    """Options of `coder version`."""

    output: str = output_option(("text", "json"), "text")


VERSION = Command(
    words="version",
    summary="Show coder version",
    options=VersionOptions,
    max_args=0,
    examples=(
        ("Show the version", "coder version"),
        ("Print JSON for a script", "coder version -o json"),
    ),
)
