"""Declaration of `coder publickey`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import YesOption, option


class PublickeyOptions(YesOption):
    """Options of `coder publickey`."""

    reset: bool = option(
        False,
        "Generate a new key pair; replace the old key wherever you registered it.",
    )


PUBLICKEY = Command(
    words="publickey",
    summary="Output your Coder public key used for Git operations",
    options=PublickeyOptions,
    max_args=0,
    examples=(
        ("Print the public key to add at your Git provider", "coder publickey"),
        ("Generate a new key pair", "coder publickey --reset"),
    ),
)
