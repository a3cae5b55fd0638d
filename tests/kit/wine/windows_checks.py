# mypy: disable-error-code="attr-defined,unreachable"
"""Checks of code for Windows, run by Python for Windows under Wine from these sources; prints a JSON document.

Arguments: a folder for files, and the names of checks; the agent is imported by those that need it. Each check is a
function of a folder; its result is compared in `tests/system/test_windows_files.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import traceback
from dataclasses import replace
from pathlib import Path

from coder.base.atomic_file import write_atomically
from coder.base.files import private_files
from coder.base.files.private_files import open_private, replace_file
from coder.base.files.sddl import others_can_write
from coder.base.files.windows_access import _ACCESS_LIST, _advapi32, _descriptor, access_list, foreign_writer, user_sid

MANIFEST = b"manifest"


def private_file(folder: Path) -> dict[str, object]:
    """A file with a secret has a list of two users; another one inherits the folder's."""
    write_atomically(folder / "token", "secret\n")
    write_atomically(folder / "plain", "text\n", mode=0o644)
    own = access_list(folder / "token")
    (folder / "overwritten").write_text("public")
    os.close(open_private(folder / "overwritten", os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
    write_atomically(folder / "token", "other")
    write_atomically(folder / "shared", "s", owner=os.environ["USERNAME"])
    return {
        "users": sorted(entry.rpartition(";")[2] for entry in own.split("(")[1:]),
        "expected": sorted(f"{each})" for each in ("SY", user_sid())),
        "kept": access_list(folder / "token") == own,
        "overwritten": access_list(folder / "overwritten") == own,
        "inherits": access_list(folder / "plain") != own,
        "text": (folder / "plain").read_bytes().decode(),
        "named": access_list(folder / "shared") != "",
    }


def open_flags(folder: Path) -> list[str]:
    """`open_private` opens as `os.open` does."""
    path, results = folder / "flags", []
    for flags in (os.O_WRONLY, os.O_WRONLY | os.O_CREAT | os.O_EXCL, os.O_WRONLY | os.O_CREAT | os.O_EXCL):
        try:
            descriptor = open_private(path, flags)
            os.write(descriptor, b"ab\n")
            os.close(descriptor)
            results.append("ok")
        except OSError as error:
            results.append(type(error).__name__)
    descriptor = open_private(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, b"c")
    os.close(descriptor)
    return [*results, path.read_bytes().decode()]


def held_file(folder: Path) -> list[str]:
    """A program that holds a file open without sharing its removal, as an antivirus does."""
    target, new, results = folder / "held", folder / "new", []
    target.write_text("old")
    for release in (False, True):
        new.write_text("new")
        with target.open() as holder:
            private_files.HELD_SECONDS = 60.0 if release else 0.0
            private_files.time.sleep = lambda _: holder.close()
            try:
                replace_file(new, target)
                results.append(target.read_text())
            except PermissionError:
                results.append("PermissionError")
    return results


def running_program(folder: Path) -> list[bool]:
    """An installed program is replaced while it runs."""
    from coder.cli.agents.agent_install import _replace_program

    installed, source = folder / "inst alled.exe", folder / "download"
    shutil.copyfile(sys.executable, installed)
    source.write_bytes(b"newer")
    code = "import sys; print(1, flush=True); sys.stdin.read()"
    with subprocess.Popen([installed, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdin is not None
        process.stdout.readline()
        _replace_program(source, installed)
        runs = process.poll() is None
        process.stdin.close()
    return [runs, installed.read_bytes() == b"newer"]


def private_folder(folder: Path) -> list[bool]:
    """A folder that is made for one user is private; one with the list of its parent is not."""
    (folder / "own").mkdir(mode=0o700)
    (folder / "plain").mkdir()
    return [others_can_write(access_list(folder / name), user_sid()) for name in ("own", "plain")]


def folder_above(folder: Path) -> list[str]:
    """A private folder below one that everyone may write is as replaceable as that one."""
    above, results = folder / "above", []
    inner = above / "inner"
    for path in (above, inner):
        path.mkdir(mode=0o700)
    for sddl in ("", "D:P(A;;FA;;;WD)"):
        if sddl:
            with _descriptor(sddl) as described:
                _advapi32.SetFileSecurityW(str(above), _ACCESS_LIST, described)
        results.append(foreign_writer(inner).replace(str(folder), ""))
    return results


def locked_folder(folder: Path) -> list[str]:
    """The folder of newer programs is private and locked by one agent."""
    from coder.agent.upgrade.folder import ensure_private, locked
    from coder.agent.upgrade.outcomes import UpgradeNotNowError

    results = []
    made = folder / "upgrade"
    ensure_private(made)
    results.append("private")
    with locked(made):
        try:
            with locked(made):
                results.append("locked twice")
        except UpgradeNotNowError:
            results.append("locked once")
    return results


def code_page(folder: Path) -> list[str]:
    """Output of programs is UTF-8, or in the code page of consoles."""
    from coder.agent.platform import system
    from coder.agent.upgrade.signals import ENDING

    samples = ("né".encode(), "né".encode("oem"), "né".encode()[:-1])
    encodings = [system.output_encoding(data) for data in samples]
    cut = system.output_encoding(samples[2], is_cut=True)
    return [*encodings, cut, samples[1].decode(encodings[1]), *(number.name for number in ENDING)]


SUCCESSOR = """
import sys
sys.argv = ["coder"]
from tests.kit.wine.windows_checks import succeed
succeed({connects})
"""


def succeed(connects: bool) -> None:
    """The newer program: it takes the state over, and ends with a code that says what it got."""
    from coder.agent.upgrade.handover import take_over
    from coder.agent.upgrade.supervisor import find_supervisor, report_takeover

    supervised, state = find_supervisor(os.environ), take_over(os.environ)
    if not connects:
        raise SystemExit(4)
    report_takeover()
    raise SystemExit(7 if supervised and state is not None and state.manifest == MANIFEST else 8)


def successor(folder: Path) -> list[object]:
    """A newer program is started with the state; one that ends before it has connected falls back."""
    from coder.agent.platform import system
    from coder.agent.upgrade.handover import Handover, Restart
    from coder.agent.upgrade.supervisor import hand_over

    state = Handover("v1", "v2", "", [(1, 2.0)], MANIFEST, [], [], None, digest="aa")
    results: list[object] = [system.HAS_EXECVE]
    for program, connects in ((folder / "missing.exe", False), (sys.executable, False), (sys.executable, True)):
        restart = Restart(("-c", SUCCESSOR.format(connects=connects)), dict(os.environ))
        try:
            results.append(hand_over(replace(state, program=str(program)), restart).refused.partition(":")[0])
        except SystemExit as end:
            results.append(end.code)
    return results


CHECKS = (
    private_file,
    open_flags,
    held_file,
    private_folder,
    folder_above,
    running_program,
    locked_folder,
    code_page,
    successor,
)


def main(folder: Path, names: list[str]) -> None:
    found: dict[str, object] = {}
    for check in (check for check in CHECKS if check.__name__ in names):
        place = folder / check.__name__
        place.mkdir()
        try:
            found[check.__name__] = check(place)
        except Exception:
            found[check.__name__] = traceback.format_exc()
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
