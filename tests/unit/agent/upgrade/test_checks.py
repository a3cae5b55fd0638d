"""Repeated checks of a verified program before it takes over; the first checks are tested with the download."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from coder.agent.upgrade.checks import check_again
from coder.agent.upgrade.handover import FORMAT
from coder.agent.upgrade.outcomes import UpgradeNotNowError

PROGRAM = f"""#!/bin/sh
[ -e "$(dirname "$0")/cache" ] || {{ echo no room to unpack >&2; exit $(cat "$(dirname "$0")/status"); }}
case "$*" in
"version --output json") echo '{{"version": "v9.0.0"}}' ;;
"agent --can-take-over={FORMAT}") ;;
*) exit 3 ;;
esac
"""


def unchanged(_: Path) -> None:
    """Nothing has changed."""


def bytes_changed(folder: Path) -> None:
    (folder / "program").write_text("#!/bin/sh\n")


def file_deleted(folder: Path) -> None:
    (folder / "program").unlink()


def folder_writable(folder: Path) -> None:
    folder.chmod(0o777)


def cache_cleaned(folder: Path) -> None:
    (folder / "cache").unlink()


def cache_cleaned_and_broken(folder: Path) -> None:
    cache_cleaned(folder)
    (folder / "status").write_text("1")


SINCE: dict[Callable[[Path], None], tuple[type[Exception], str] | None] = {
    unchanged: None,
    bytes_changed: (UpgradeNotNowError, "bytes have changed"),
    file_deleted: (FileNotFoundError, "program"),
    folder_writable: (UpgradeNotNowError, "is writable by other users"),
    cache_cleaned: (UpgradeNotNowError, "no room to unpack"),
    cache_cleaned_and_broken: (UpgradeNotNowError, "no room to unpack"),
}
"""Changes since the verification; none is a verdict on the bytes."""


@pytest.mark.parametrize("since", SINCE, ids=lambda since: since.__name__)
async def test_verified_program_is_rechecked(since: Callable[[Path], None], tmp_path: Path) -> None:
    folder = tmp_path / "upgrade"
    folder.mkdir(mode=0o700)
    path = folder / "program"
    path.write_text(PROGRAM)
    path.chmod(0o700)
    (folder / "cache").touch()
    (folder / "status").write_text("127")
    since(folder)
    outcome, digest = SINCE[since], hashlib.sha256(PROGRAM.encode()).hexdigest()
    if outcome is None:
        await check_again(folder, path, "v9.0.0", digest)
        return
    with pytest.raises(outcome[0], match=outcome[1]):
        await check_again(folder, path, "v9.0.0", digest)
