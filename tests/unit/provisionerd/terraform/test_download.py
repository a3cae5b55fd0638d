"""Machines without terraform: download from a release site, verification, installation; OpenTofu as an alternative."""

from __future__ import annotations

import hashlib
import io
import platform
import sys
import zipfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio

from coder.provisionerd.terraform.binary import TerraformMissing, find_binary
from coder.provisionerd.terraform.download import VERSION, DownloadFailed, download

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="names the archive of this platform"
)
ARCHIVE = f"/{VERSION}/terraform_{VERSION}_linux_amd64.zip"
SUMS = f"/{VERSION}/terraform_{VERSION}_SHA256SUMS"
PROGRAM = '#!/bin/sh\necho \'{"terraform_version": "%s", "provider_selections": {}}\'\n' % VERSION  # noqa: UP031


def packed(name: str = "terraform") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("LICENSE.txt", "words")
        archive.writestr(name, PROGRAM)
    return buffer.getvalue()


def sums(archive: bytes) -> bytes:
    return f"{'0' * 64}  other.zip\n{hashlib.sha256(archive).hexdigest()}  {ARCHIVE.rpartition('/')[2]}\n".encode()


@asynccontextmanager
async def site(pages: Mapping[str, bytes]) -> AsyncIterator[tuple[str, list[str]]]:
    """A release site on loopback that records its requests."""
    asked: list[str] = []

    async def serve(stream: trio.SocketStream) -> None:
        while b"\r\n\r\n" not in (head := await _head(stream)):
            if not head:
                return
        path = head.split(b" ")[1].decode()
        asked.append(path)
        body = pages.get(path)
        status = b"404 Not Found" if body is None else b"200 OK"
        body = body or b"gone"
        await stream.send_all(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))
        await serve(stream)

    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
        yield f"http://127.0.0.1:{listener.socket.getsockname()[1]}", asked
        nursery.cancel_scope.cancel()


async def _head(stream: trio.SocketStream) -> bytes:
    head = b""
    while b"\r\n\r\n" not in head:
        data = await stream.receive_some()
        if not data:
            return b""
        head += data
    return head


async def test_fetched_once_and_used(tmp_path: Path) -> None:
    archive = packed()
    nothing = {"PATH": str(tmp_path / "empty")}
    async with site({ARCHIVE: archive, SUMS: sums(archive)}) as (url, asked):
        found: list[Path] = []

        async def one() -> None:
            found.append(await download(url, tmp_path / "tf"))

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(one)
        assert asked == [SUMS, ARCHIVE], "the others waited"
        binary = await find_binary("terraform", nothing, lambda: download(url, tmp_path / "tf"))
        assert binary.path == str(found[0]) and binary.init_speaks_json
        assert len(asked) == 2
    assert sorted(path.name for path in (tmp_path / "tf").iterdir()) == [f"terraform-{VERSION}", "terraform.lock"]


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        ({}, "404"),
        ({SUMS: b"nonsense"}, "has no terraform_"),
        ({SUMS: sums(packed()), ARCHIVE: packed() + b"x"}, "checksum differs from the release's list"),
        ({SUMS: sums(b"junk"), ARCHIVE: b"junk"}, "cannot be unpacked"),
        ({SUMS: sums(packed("other")), ARCHIVE: packed("other")}, "no terraform in it"),
    ],
)
async def test_invalid_downloads_are_rejected(tmp_path: Path, pages: dict[str, bytes], message: str) -> None:
    async with site(pages) as (url, _):
        with pytest.raises(DownloadFailed, match=message) as caught:
            await download(url.replace("://", "://user:s3cret@"), tmp_path)
        assert "s3cret" not in str(caught.value)
        with pytest.raises(TerraformMissing, match="could not be downloaded either"):
            await find_binary("terraform", {"PATH": ""}, lambda: download(url, tmp_path))
        with pytest.raises(TerraformMissing, match="'/not/there' is not an executable"):
            await find_binary("/not/there", {"PATH": ""}, lambda: download(url, tmp_path))
    assert not (tmp_path / f"terraform-{VERSION}").exists()


async def test_concurrent_processes_install_whole_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers have few process numbers, and so do the temporary names; and some processes are killed half-way."""
    monkeypatch.setattr("os.getpid", lambda: int(VERSION.rpartition(".")[2]))
    (tmp_path / ".unfinished-left").write_bytes(b"half")
    async with site({ARCHIVE: packed(), SUMS: sums(packed())}) as (url, _):
        program = await download(url, tmp_path)
    assert program.read_text() == PROGRAM
    assert program.stat().st_mode & 0o777 == 0o755
    assert sorted(path.name for path in tmp_path.iterdir()) == [program.name, "terraform.lock"]


async def test_open_tofu(tmp_path: Path) -> None:
    """OpenTofu answers `version -json` with terraform's key; its version is compared like terraform's."""
    tofu = tmp_path / "tofu"
    answer = '{"terraform_version": "1.8.3", "platform": "linux_amd64", "provider_selections": {}}'
    tofu.write_text(f"#!/bin/sh\necho '{answer}'\n")
    tofu.chmod(0o755)
    by_name = await find_binary("terraform", {"PATH": str(tmp_path)})
    by_path = await find_binary(str(tofu), {"PATH": ""})
    assert by_name == by_path and by_name.version == (1, 8, 3)
    assert by_name.graph_has_type and not by_name.init_speaks_json
