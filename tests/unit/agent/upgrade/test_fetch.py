"""Download of a server's program, and everything that makes it unfit."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest
import trio
import trio.testing

from coder.agent.upgrade import checks, fetch
from coder.agent.upgrade import folder as folder_of_programs
from coder.agent.upgrade.fetch import fetch_program, server_digest
from coder.agent.upgrade.folder import locked
from coder.agent.upgrade.outcomes import UpgradeNotNowError, UpgradeRefusedError
from coder.base.errors import CoderError
from coder.base.files import private_files
from coder.base.files.private_files import SHARING_VIOLATION
from coder.net.errors import HttpError, NetError
from coder.net.http1 import HttpClient, HttpResponse
from tests.kit.event_loop_probes import watched

NAME = "coder-linux-amd64"
GOOD = b"""#!/bin/sh
case "$*" in
"version --output json") echo '{"version": "v9.0.0"}' ;;
"agent --can-take-over=1") ;;
*) exit 3 ;;
esac
"""


class Answer:
    def __init__(self, body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.status, self.headers, self._body = status, headers or {}, body

    async def chunks(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._body), 50):
            yield self._body[start : start + 50]


class Shelf:
    """A server's /bin, as the client sees it."""

    def __init__(self, program: bytes = GOOD, checksum: str = "", signature: bytes | None = None) -> None:
        self.program, self.signature, self.fetched = program, signature, 0
        self.checksum = checksum or f"{hashlib.sha256(program).hexdigest()}  {NAME}\n"
        self.headers: dict[str, str] = {}

    async def request(self, _method: str, path: str, *, expect: Sequence[int]) -> HttpResponse:
        body: bytes | None = self.checksum.encode() if path.endswith(".sha256") else self.signature
        status = 404 if body is None else 200
        if status not in expect:
            raise HttpError(status, "no")
        return HttpResponse(status, {}, body or b"")

    @asynccontextmanager
    async def stream(self, _method: str, _path: str, *, head_timeout: float) -> AsyncIterator[Answer]:
        assert head_timeout == fetch.STALL_TIMEOUT
        self.fetched += 1
        yield Answer(self.program, headers=self.headers)


async def fetched(shelf: Shelf, folder: Path, keyring: Path | None = None) -> Path:
    client = cast("HttpClient", shelf)
    digest = await server_digest(client, NAME)
    return await fetch_program(client, NAME, "v9.0.0", digest, folder, keyring)


async def test_good_program_is_fetched_once(tmp_path: Path) -> None:
    folder = tmp_path / "upgrade"
    folder.mkdir(mode=0o700)
    (folder / "coder-0123456789abcdef.part").write_text("of a download that was killed")
    (folder / "refused.json").write_text("{}")
    shelf = Shelf()
    path = await fetched(shelf, folder)
    assert path.read_bytes() == GOOD and path.stat().st_mode & 0o777 == 0o700
    assert sorted(one.name for one in folder.iterdir()) == [".lock", path.name, "refused.json"]
    assert await fetched(shelf, folder) == path and shelf.fetched == 1
    path.write_bytes(b"damaged on the disk")
    assert (await fetched(shelf, folder)).read_bytes() == GOOD and shelf.fetched == 2


VERDICTS: dict[str, tuple[Shelf, str]] = {
    "no program": (Shelf(b"\x7fELF of another machine"), "does not run here"),
    "fails": (Shelf(b"#!/bin/sh\necho broken >&2\nexit 1\n"), "does not run here: broken"),
    "unknown instruction": (Shelf(b"#!/bin/sh\nkill -ILL $$\n"), "does not run here: status -4"),
    "no version": (Shelf(b"#!/bin/sh\necho '[]'\n"), "does not run here"),
    "thousands of brackets": (Shelf(b"#!/bin/sh\nprintf '[%.0s' $(seq 100000)\n"), "does not run here"),
    "foreign": (Shelf(GOOD.replace(b"over=1", b"over=2")), "cannot take over"),
}
"""Permanent faults of these bytes on this machine."""
PASSING: dict[str, tuple[Shelf, str]] = {
    "another checksum": (Shelf(checksum=f"{'0' * 64}  {NAME}\n"), "its checksum differs"),
    "no checksum": (Shelf(checksum="<html>sign in</html>"), "checksum is malformed"),
    "too large": (Shelf(b"#!/bin/sh\n" * 100), "larger than"),
    "another version": (Shelf(GOOD.replace(b"v9.0.0", b"v8.0.0")), "it is v8.0.0, and the server is v9.0.0"),
    "too slow": (Shelf(b"#!/bin/sh\nexec sleep 60\n"), "did not finish within 1 s"),
    "endless output": (Shelf(b"#!/bin/sh\nexec yes\n"), "printed more than 1 MiB"),
    "killed": (Shelf(b"#!/bin/sh\nkill -KILL $$\n"), "does not run here: status -9"),
    "killed below a shell": (Shelf(b"#!/bin/sh\nexit 137\n"), "does not run here: status 137"),
    "no room to unpack": (Shelf(b"#!/bin/sh\necho no space >&2; exit 127\n"), "does not run here: no space"),
    "no interpreter": (Shelf(b"#!/nowhere/sh\n"), "cannot be started"),
}
"""Faults that another replica, more disk space or a quieter machine may remove."""


@pytest.mark.parametrize("what", [*VERDICTS, *PASSING])
async def test_unfit_programs_are_rejected(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf, reason = (VERDICTS | PASSING)[what]
    monkeypatch.setattr(fetch, "MAX_SIZE", 500)
    monkeypatch.setattr(checks, "FIRST_START_TIMEOUT", 1.0 if what == "too slow" else 60.0)
    kind: type[CoderError] = UpgradeRefusedError if what in VERDICTS else UpgradeNotNowError
    with pytest.raises(kind, match=reason):
        await fetched(shelf, tmp_path / "upgrade")
    assert not [one for one in (tmp_path / "upgrade").glob("*") if one.suffix == ".part"]


_IS_NOTED = b"until test -s %note; do sleep 0.01; done\n"
LEFT_BEHIND = {
    "exits": b"%s &\n" + _IS_NOTED + GOOD.split(b"\n", 1)[1],
    "hangs": b"%s &\nwait\n",
    "prints without end": b"%s &\n" + _IS_NOTED + b"exec yes\n",
}
"""Programs that start another one, which holds their output open."""


def _runs(pid: str) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.mark.parametrize("what", LEFT_BEHIND)
async def test_checked_program_leaves_no_process(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = tmp_path / "note"
    other = f"sh -c 'echo $$ >>{note}; exec sleep 300'".encode()
    monkeypatch.setattr(checks, "FIRST_START_TIMEOUT", 1.0 if what == "hangs" else 60.0)
    monkeypatch.setattr(checks, "_PIPE_GRACE", 0.1)
    body = LEFT_BEHIND[what].replace(b"%note", str(note).encode()).replace(b"%s", other)
    shelf = Shelf(b"#!/bin/sh\n" + body)
    with trio.fail_after(60), suppress(UpgradeNotNowError):
        await fetched(shelf, tmp_path / "upgrade")
    # The one that hangs may be ended before the other one has noted itself.
    assert note.exists() or what == "hangs"
    with trio.fail_after(60):
        while note.exists() and any(map(_runs, note.read_text().split())):
            await trio.sleep(0.01)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
async def test_disk_failure_is_no_verdict(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(OSError, match=os.strerror(number)):
            await fetched(Shelf(), tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == [".lock"]
    assert (await fetched(Shelf(), tmp_path)).read_bytes() == GOOD


async def test_new_program_held_by_antivirus_is_awaited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows neither renames nor removes a file that another program reads."""
    original = Path.replace
    refused: list[Path] = []

    def held(self: Path, target: Path) -> Path:
        if len(refused) < 2:
            refused.append(self)
            error = PermissionError(errno.EACCES, "held")
            error.winerror = SHARING_VIOLATION  # type: ignore[attr-defined]
            raise error
        return original(self, target)

    monkeypatch.setattr(Path, "replace", held)
    monkeypatch.setattr(private_files, "HELD_INTERVAL", 0)
    assert (await fetched(Shelf(), tmp_path)).read_bytes() == GOOD and len(refused) == 2


class Trickle(Answer):
    """One byte per interval, forever."""

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            await trio.sleep(fetch.STALL_TIMEOUT * 0.9)
            yield b"#"


async def test_trickling_download_times_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    async def run_here(function: Any, *arguments: Any) -> Any:  # a test clock does not wait for a thread
        await trio.lowlevel.checkpoint()
        return function(*arguments)

    for module in (checks, fetch, folder_of_programs):
        monkeypatch.setattr(module, "on_disk", run_here)
    shelf = Shelf()

    @asynccontextmanager
    async def stream(*_: Any, **__: Any) -> AsyncIterator[Answer]:
        yield Trickle(b"")

    shelf.stream = stream  # type: ignore[method-assign]
    began = trio.current_time()
    with pytest.raises(NetError, match="was not downloaded within"):
        await fetched(shelf, tmp_path)
    assert trio.current_time() - began == pytest.approx(fetch.DOWNLOAD_TIMEOUT, abs=1)
    assert [one.name for one in tmp_path.iterdir()] == [".lock"]


@pytest.mark.parametrize("program", [GOOD, b"\x7fELF of another machine"])
async def test_file_calls_run_in_threads(program: bytes, tmp_path: Path) -> None:
    """A silent disk would block every terminal of the workspace."""
    folder = tmp_path / "upgrade"
    folder.mkdir(mode=0o700)
    for name in ("0123456789abcdef.part", "coder-0123456789abcdef"):
        (folder / name).touch()
    with watched(folder) as found, suppress(UpgradeRefusedError):
        path = await fetched(Shelf(program), folder)
        await checks.check_again(folder, path, "v9.0.0", hashlib.sha256(program).hexdigest())
    assert not found


async def test_concurrent_fetch_is_locked(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(UpgradeNotNowError, match="another agent is using"):
        await fetched(Shelf(), tmp_path)
    assert (await fetched(Shelf(), tmp_path)).read_bytes() == GOOD


async def test_planted_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").write_text("of another user")
    name = f".coder-{hashlib.sha256(GOOD).hexdigest()[:16]}.{'00' * 8}.part"
    (tmp_path / "a").mkdir(mode=0o700)
    monkeypatch.setattr(os, "urandom", bytes)
    monkeypatch.setattr(Path, "glob", lambda *_: ())  # it appears after the cleanup
    (tmp_path / "a" / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        await fetched(Shelf(), tmp_path / "a")
    assert (tmp_path / "elsewhere").read_text() == "of another user"


@pytest.mark.parametrize("keyring", [False, True])
async def test_changed_file_gets_no_verdict(keyring: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A verdict applies to the bytes with the server's SHA-256: other bytes must not refuse them."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / "gpgv").write_text('#!/bin/sh\nfor last; do :; done\necho "# other" >>"$last"\nexit 1\n')
    (tmp_path / "gpgv").chmod(0o755)
    shelf = Shelf(GOOD if keyring else b'#!/bin/sh\necho "# other" >>"$0"\nexit 1\n', signature=b"x")
    with pytest.raises(UpgradeNotNowError, match="changed while"):
        await fetched(shelf, tmp_path / "a", tmp_path / "keyring" if keyring else None)


async def test_check_leaves_no_command_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A warm server may belong to another program, and answer in its place."""
    monkeypatch.delenv("CODER_NO_COMMAND_SERVER", raising=False)
    asking = GOOD.replace(b"#!/bin/sh\n", b'#!/bin/sh\n[ -n "$CODER_NO_COMMAND_SERVER" ] || exit 4\n')
    assert (await fetched(Shelf(asking), tmp_path)).read_bytes() == asking


def of_version(number: int) -> bytes:
    return GOOD + f"# {number}\n".encode()


async def test_earlier_names_start_current_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell of the second program outlives it by any number of upgrades."""
    paths: list[Path] = []
    for number in range(6):
        paths.append(await fetched(Shelf(of_version(number)), tmp_path))
        for older in paths[:-1]:
            assert older.read_bytes() == of_version(number - 1), "the running program while the next one waits"
        monkeypatch.setenv("CODER_SELF", str(paths[-1]))  # and continues as that one
    assert sorted(tmp_path.glob("coder-*")) == sorted(paths)
    assert {one.readlink() for one in paths[:-2]} == {Path(paths[-2].name)}, "a chain of links fails at forty"


async def test_network_failure_is_no_verdict(tmp_path: Path) -> None:
    shelf = Shelf()
    shelf.headers = {"content-encoding": "gzip"}
    with pytest.raises(NetError):
        await fetched(shelf, tmp_path)
    missing = Shelf()
    missing.checksum = cast("Any", None)

    async def request(*_: Any, **__: Any) -> HttpResponse:
        raise HttpError(404, "There is none.")

    missing.request = request  # type: ignore[method-assign]
    with pytest.raises(HttpError):
        await fetched(missing, tmp_path)


async def test_unwritable_folder_is_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="Not a directory"):
        await fetched(Shelf(), tmp_path / "file" / "upgrade")


@pytest.mark.skipif(not (shutil.which("gpg") and shutil.which("gpgv")), reason="signatures are GnuPG's")
async def test_keyring_requires_signature(tmp_path: Path, open_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = open_path / "gnupg"  # the agent's sockets are in it: an address has at most 107 bytes
    home.mkdir(mode=0o700)
    (tmp_path / "program").write_bytes(GOOD)

    def gpg(*words: str) -> bytes:
        argv = ["gpg", "--homedir", str(home), "--batch", "--yes", "--passphrase", "", "--pinentry-mode", "loopback"]
        return subprocess.run([*argv, *words], check=True, capture_output=True).stdout

    try:
        gpg("--quick-gen-key", "builder@example.com", "ed25519", "sign", "never")
        keyring = tmp_path / "keyring.gpg"
        keyring.write_bytes(gpg("--export"))
        gpg("--armor", "--detach-sign", str(tmp_path / "program"))
        signature = (tmp_path / "program.asc").read_bytes()
    finally:
        subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=False)
    with pytest.raises(UpgradeNotNowError, match="not signed"):
        await fetched(Shelf(), tmp_path / "a", keyring)
    other = GOOD + b"# changed\n"
    with pytest.raises(UpgradeRefusedError, match="signature is bad"):
        await fetched(Shelf(other, signature=signature), tmp_path / "a", keyring)
    path = await fetched(Shelf(signature=signature), tmp_path / "a", keyring)
    assert path.read_bytes() == GOOD
    for unable in (tmp_path / "no-keyring.gpg", tmp_path / "empty.gpg"):
        (tmp_path / "empty.gpg").touch()  # does not have the signature's key
        with pytest.raises(UpgradeNotNowError, match="cannot be checked"):
            await fetched(Shelf(signature=signature), tmp_path / "a", unable)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UpgradeNotNowError, match="gpgv cannot be started"):
        await fetched(Shelf(signature=signature), tmp_path / "a", keyring)
    assert not [one for one in (tmp_path / "a").iterdir() if one.name.endswith((".part", ".asc"))]
