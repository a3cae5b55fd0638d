"""Attacks by template archives: each malformed archive for each parser of archives.

The server converts archives (tar to zip, zip to tar), the sandbox reads sources, the provisioner unpacks into a
directory. Each one refuses the archive with its own message or skips everything but plain files. No other failure is
allowed, and no file may appear outside of the directory.
"""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from coder.coderd.services.templates import archives, template_sources
from coder.provisionerd import archive as provisioner_archive
from tests.kit.provisioners.scripted_provisioner import connected_daemon
from tests.kit.server.server_in_process import World, running_coderd

Entry = tuple[tarfile.TarInfo, bytes]


def _entry(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", data: bytes = b"x", mode: int = 0o644) -> Entry:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.mode = kind, target, mode
    entry.size = len(data) if kind in {tarfile.REGTYPE, tarfile.CONTTYPE, b"Z"} else 0
    return entry, data if entry.size else b""


def _tar(*entries: Entry, format: int = tarfile.PAX_FORMAT) -> bytes:
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w", format=format) as tar:
        for entry, data in entries:
            tar.addfile(entry, io.BytesIO(data))
    return output.getvalue()


def _pax(name: str, headers: dict[str, str], data: bytes = b"") -> bytes:
    entry = tarfile.TarInfo(name)
    entry.pax_headers, entry.size = headers, len(data)
    return _tar((entry, data))


def _sparse(name: str, size: int) -> bytes:
    headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.name": name,
        "GNU.sparse.realsize": str(size),
    }
    return _pax("sparse", headers, b"1\n0\n0\n".ljust(512, b"\0"))


def _patched(at: int, raw: bytes) -> bytes:
    """Return a header with other bytes and a matching checksum."""
    data = bytearray(_tar(_entry("x", data=b"hello"), format=tarfile.GNU_FORMAT))
    data[at : at + len(raw)] = raw
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    return bytes(data)


FOLDER, LINK, HARD = tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
TARS: dict[str, bytes] = {
    **{
        f"the name {name[:20]!r}": _tar(_entry(name))
        for name in (
            "",
            ".",
            "./",
            "..",
            "../x",
            "a/../../x",
            "/etc/x",
            "//x",
            "/./x",
            "..\\x",
            "\\\\host\\x",
            "C:/x",
            "c:x",
            "a/c:x",
            "~/x",
            "n" * 300,
            "/".join(["d" * 200] * 30),
            "/".join(["d"] * 3000),
            "a\nb.tf",
            "a\\b.tf",
            "a\u202eft.nimda",
            "con",
            "a. ",
            "-rf",
            "$(id)",
            "`id`",
            "*",
            "a\udcff.tf",
        )
    },
    "a file, and one below it": _tar(_entry("a"), _entry("a/b")),
    "a folder that becomes a file": _tar(_entry("a", FOLDER), _entry("a")),
    "a file that becomes a folder": _tar(_entry("a"), _entry("a", FOLDER)),
    "twice": _tar(_entry("main.tf"), _entry("main.tf", data=b"y")),
    "twice by another name": _tar(_entry("main.tf"), _entry("./main.tf", data=b"y")),
    "twice in another case": _tar(_entry("main.tf"), _entry("MAIN.TF")),
    "twice in another form": _tar(_entry("a\u0301.tf"), _entry("\u00e1.tf")),
    "a link, and a file through it": _tar(_entry("d", LINK, "/tmp"), _entry("d/evil")),
    "a link to a parent directory": _tar(_entry("d", LINK, "../.."), _entry("d/evil")),
    "a hard link to a file of the machine": _tar(_entry("d", HARD, "/etc/passwd"), _entry("d")),
    "a hard link to a later file": _tar(_entry("d", HARD, "main.tf"), _entry("main.tf")),
    "a link to itself": _tar(_entry("d", LINK, "d")),
    "a folder without permissions": _tar(_entry("d", FOLDER, mode=0), _entry("d/x")),
    "special bits": _tar(_entry("run", mode=0o7777)),
    "an unknown kind": _tar(_entry("d", b"Z")),
    "a contiguous file": _tar(_entry("d", tarfile.CONTTYPE)),
    **{f"a device {kind!r}": _tar(_entry("d", kind)) for kind in (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)},
    "sparse and huge": _sparse("big", 1 << 40),
    "sparse and outside": _sparse("../../big", 100),
    "sparse and negative": _sparse("big", -5),
    **{
        f"the header {name}={value[:20]!r}": _pax("ok", {name: value})
        for name, value in (
            ("path", "../../evil"),
            ("path", "/etc/x"),
            ("path", "a\x00b"),
            ("size", "-5"),
            ("size", "9" * 30),
            ("linkpath", "/etc/passwd"),
            ("mtime", "9" * 400),
            ("mtime", "nan"),
            ("hdrcharset", "BINARY"),
            ("path", "p" * 100_000),
            ("uid", "-1"),
        )
    },
    **{
        f"the size {raw!r}": _patched(124, raw)
        for raw in (b"\xff" * 12, b"\x80" + b"\x7f" * 11, b"zzzzzzzzzzz\0", b"77777777777\0", b"\0" * 12)
    },
    **{f"the mode {raw!r}": _patched(100, raw) for raw in (b"\xff" * 8, b"\x80" + b"\x7f" * 7, b"zzzzzzz\0")},
    **{f"the time {raw!r}": _patched(136, raw) for raw in (b"\xff" * 12, b"\x80" + b"\x7f" * 11)},
    "cut short": _tar(_entry("main.tf", data=b"x" * 5000))[:1500],
    "nothing": b"",
    "zeros": bytes(10240),
    "no tar": b"garbage" * 500,
    "a long name without an end": b"././@LongLink".ljust(156, b"\0") + b"L" + bytes(355),
}


def _zip(*entries: tuple[zipfile.ZipInfo, bytes]) -> bytes:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        for info, data in entries:
            archive.writestr(info, data, zipfile.ZIP_DEFLATED)
    return output.getvalue()


def _member(name: str, mode: int = 0, data: bytes = b"x") -> tuple[zipfile.ZipInfo, bytes]:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info, data


GOOD_ZIP = _zip(_member("main.tf", data=b"x" * 100))
_END = GOOD_ZIP.rindex(b"PK\5\6")
ZIPS: dict[str, bytes] = {
    **{
        f"the name {name[:20]!r}": _zip(_member(name))
        for name in (
            "../x",
            "a/../../x",
            "/etc/x",
            "//x",
            "..\\x",
            "C:/x",
            "c:x",
            "\\\\host\\x",
            "n" * 60_000,
            "a\nb",
            "..",
            "/",
        )
    },
    "a link": _zip(_member("d", stat.S_IFLNK | 0o777, b"/etc/passwd")),
    "a device": _zip(_member("d", stat.S_IFBLK | 0o666)),
    "special bits": _zip(_member("d", stat.S_IFREG | 0o7777)),
    "encrypted": GOOD_ZIP.replace(b"PK\1\2\x14\x03\x14\0\0\0", b"PK\1\2\x14\x03\x14\0\1\0"),
    "another method": GOOD_ZIP.replace(b"PK\1\2\x14\x03\x14\0\0\0", b"PK\1\2\x14\x03\x14\0\0\0\x63"),
    "a wrong sum": GOOD_ZIP.replace(
        zipfile.ZipFile(io.BytesIO(GOOD_ZIP)).infolist()[0].CRC.to_bytes(4, "little"), b"\1\2\3\4"
    ),
    "a table of contents elsewhere": GOOD_ZIP[: _END + 16] + b"\xff\xff\xff\x7f" + GOOD_ZIP[_END + 20 :],
    "more members than there are": GOOD_ZIP[: _END + 8] + b"\xff\xff\xff\xff" + GOOD_ZIP[_END + 12 :],
    "a bomb": _zip(*[_member(f"{number}", data=bytes(30 << 20)) for number in range(4)]),
    "cut short": GOOD_ZIP[:-10],
    "no zip": b"PK\3\4" + b"x" * 500,
    "nothing": b"",
    "an end alone": GOOD_ZIP[_END:],
    "text before it": b"#!/bin/sh\n" + GOOD_ZIP,
}


def _to_zip(data: bytes, _folder: Path) -> None:
    archives.tar_to_zip(io.BytesIO(data), io.BytesIO())


def _sources(data: bytes, _folder: Path) -> None:
    for name in template_sources.unpack_untrusted(io.BytesIO(data)):
        assert not Path(name).is_absolute() and ".." not in Path(name).parts


def _unpack(data: bytes, folder: Path) -> None:
    provisioner_archive.unpack_untrusted(data, folder)


READERS: dict[str, Callable[[bytes, Path], None]] = {"zip": _to_zip, "sources": _sources, "provisioner": _unpack}


@pytest.mark.parametrize("reader", READERS)
def test_no_tar_does_harm(reader: str, tmp_path: Path) -> None:
    wrong = []
    for number, (what, data) in enumerate(TARS.items()):
        outer = tmp_path / str(number)
        inner = outer / "a" / "b"
        inner.mkdir(parents=True)
        try:
            READERS[reader](data, inner)
        except (archives.ArchiveError, provisioner_archive.UnpackError):
            pass
        except Exception as error:  # any error at all fails the test
            wrong.append(f"{what}: {type(error).__name__}: {str(error)[:120]}")
        beside = [path for path in outer.rglob("*") if path not in {inner, inner.parent}]
        wrong += [f"{what}: {path} outside" for path in beside if inner not in path.parents]
        wrong += [f"{what}: {path} is a link" for path in beside if path.is_symlink()]
        wrong += [f"{what}: {path} is open" for path in beside if path.is_file() and path.stat().st_mode & 0o7077]
    assert not wrong, "\n".join(wrong)
    assert len(TARS) > 60


async def _uploaded(world: World, kind: str, data: bytes) -> httpx.Response:
    return await world.request("POST", "/api/v2/files", content=data, headers={"Content-Type": kind})


async def test_no_upload_does_harm() -> None:
    """The whole flow: upload, create a version, download in both formats. A failure has a message and is no 500."""
    wrong: list[str] = []
    rows = [("application/x-tar", what, data) for what, data in TARS.items()]
    rows += [("application/zip", what, data) for what, data in ZIPS.items()]
    async with running_coderd(first_user=True) as world, connected_daemon(world):
        path = f"/api/v2/organizations/{world.organization_id}/templateversions"
        for kind, what, data in rows:
            response = await _uploaded(world, kind, data)
            if response.status_code not in {200, 201, 400}:
                wrong.append(f"{kind} {what}: {response.status_code} {response.text[:120]}")
            if response.status_code not in {200, 201}:
                continue
            file_id = response.json()["hash"]
            body: dict[str, Any] = {
                "storage_method": "file",
                "provisioner": "terraform",
                "tags": {},
                "file_id": file_id,
            }
            created = await world.post(path, body)
            if created.status_code not in {201, 400}:
                wrong.append(f"{kind} {what}: a version: {created.status_code} {created.text[:120]}")
            if created.status_code == 201 and "error in the server" in str(created.json()["job"].get("error")):
                wrong.append(f"{kind} {what}: {created.json()['job']['error']}")
            for expected in ("", "zip"):
                back = await world.get(f"/api/v2/files/{file_id}?format={expected}")
                if back.status_code not in {200, 400}:
                    wrong.append(f"{kind} {what}: download {expected}: {back.status_code} {back.text[:120]}")
                if kind == "application/x-tar" and not expected and back.content != data:
                    wrong.append(f"{kind} {what}: other bytes came back")
    assert not wrong, "\n".join(wrong)
