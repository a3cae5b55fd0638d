"""The command `coder verify`."""

from __future__ import annotations

import sys
from pathlib import Path

from coder.base.errors import CoderError
from coder.base.release import pinned_keys
from coder.base.release.signature import NotVerifiedError, PublicKey, Verified, parse_public_key, verify_file
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.program.verify import VERIFY, VerifyOptions
from coder.cli.ui.output import print_json

NOT_VERIFIED, IMPOSSIBLE = 1, 2
"Exit codes."
_LONGEST_KEY = 4096
"Bytes of a key file."


@implements(VERIFY)
def _run(invocation: Invocation[VerifyOptions]) -> int:
    options, path = invocation.options, Path(invocation.args[0])
    signature = Path(options.signature) if options.signature else None
    as_json = options.output == "json"
    try:
        verified = verify_file(path, public_keys(options.key), signature=signature)
    except CoderError as error:
        is_forged = isinstance(error, NotVerifiedError)
        if as_json and is_forged:  # a result; an impossible check has none
            print_json(
                {"file": str(path), "verified": False, "code": error.code, "error": str(error), "hint": error.hint}
            )
        else:
            sys.stderr.write(f"error: {error}. {error.hint}\n")
        return NOT_VERIFIED if is_forged else IMPOSSIBLE
    if as_json:
        print_json(_as_json(path, verified))
    else:
        source = f", listed in the signed {verified.signature.stem}" if verified.listed_as else ""
        sys.stdout.write(
            f"{path} is verified{source}.\nSHA-256: {verified.sha256}\nKey: {verified.key.name}\n"
            f"Signed comment: {verified.trusted_comment}\n"
        )
    return 0


def public_keys(given: str) -> list[PublicKey]:
    """Return the given key, or the pinned keys. `given` is a key or the path of a file with it. Raise CoderError."""
    if not given:
        if not pinned_keys.RELEASE_KEYS:
            raise CoderError(
                "release_key_missing",
                "this program pins no release key, because its builder set none",
                "Use --key with the public key that the publisher announced.",
            )
        return [parse_public_key(key) for key in pinned_keys.RELEASE_KEYS]
    try:
        with Path(given).open("rb") as file:
            text = file.read(_LONGEST_KEY).decode(errors="replace")
    except (OSError, ValueError):
        text = given
    return [parse_public_key(text)]


def _as_json(path: Path, verified: Verified) -> dict[str, str | bool]:
    return {
        "file": str(path),
        "verified": True,
        "sha256": verified.sha256,
        "signature": str(verified.signature),
        "listed_as": verified.listed_as,
        "key": verified.key.name,
        "trusted_comment": verified.trusted_comment,
    }
