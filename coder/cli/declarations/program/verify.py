"""Declaration of `coder verify`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options, option, output_option


class VerifyOptions(Options):
    """Options of `coder verify`."""

    key: str = option(
        "",
        "Minisign public key of the publisher, or a file with it; defaults to the keys pinned in this program.",
    )
    signature: str = option(
        "",
        "Signature of the file; defaults to FILE.minisig, then to SHA256SUMS with SHA256SUMS.minisig next to the file.",
    )
    output: str = output_option(("text", "json"), "text")


VERIFY = Command(
    words="verify",
    summary="Verify a file of a release offline",
    options=VerifyOptions,
    usage="<file>",
    min_args=1,
    max_args=1,
    long=(
        "Checks a program or another file of a release against the key of its publisher, without a network. The exit "
        "code is 0 if the file is the released one, 1 if it is not, and 2 if the check is impossible: no signature, no "
        "key, or a file that cannot be read."
    ),
    examples=(
        ("Verify a program next to SHA256SUMS and SHA256SUMS.minisig", "coder verify ./coder-linux-amd64"),
        ("Verify with another key", "coder verify ./coder-linux-amd64 --key release.pub"),
        ("Print JSON for a script", "coder verify ./coder-linux-amd64 --output json"),
    ),
)
