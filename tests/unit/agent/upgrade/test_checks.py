"""What was verified a while ago, when it is to take over; the first checks are tested where a program is fetched."""

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


def nothing(_: Path) -> None:
    """It is as it was."""


def changed(folder: Path) -> None:
    (folder / "program").write_text("#!/bin/sh\n")


def gone(folder: Path) -> None:
    (folder / "program").unlink()


def opened(folder: Path) -> None:
    folder.chmod(0o777)


def cleaned(folder: Path) -> None:
    (folder / "cache").unlink()


def cleaned_and_broken(folder: Path) -> None:
    cleaned(folder)
    (folder / "status").write_text("1")


SINCE: dict[Callable[[Path], None], tuple[type[Exception], str] | None] = {
    nothing: None,
    changed: (UpgradeNotNowError, "bytes have changed"),
    gone: (FileNotFoundError, "program"),
    opened: (UpgradeNotNowError, "is writable by other users"),
    cleaned: (UpgradeNotNowError, "no room to unpack"),
    cleaned_and_broken: (UpgradeNotNowError, "no room to unpack"),
}
"""What happened since; none of it says anything of the bytes."""


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
