"""/bin: the slim program cut out of a full one's file, ranges, encodings, checksums, signatures."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest

from coder.coderd.services.site.compressed_programs import MIN_SIZE
from coder.domain.agents.init_scripts import PLATFORMS
from tests.kit.server.server_in_process import running_coderd

sys.path.insert(0, str(Path(__file__).resolve().parents[5] / "build"))
import packing  # from build/, which writes the files the server reads

LAUNCHER, SLIM, REST = b"\x7fELF" + bytes(96), b"slim" * 1000, b"rest" * 500
NAME = "coder-linux-arm64"
WHOLE = packing.full_program(LAUNCHER, SLIM, REST)
SLIM_FILE = packing.slim_program(LAUNCHER, SLIM)


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / NAME).write_bytes(WHOLE)
    (folder / "coder-linux-armv7").write_bytes(SLIM_FILE)
    (folder / "coder-windows-amd64.exe").write_bytes(b"MZ" + bytes(998))
    (folder / "coder-windows-amd64.exe.zst").write_bytes(b"zstd bytes")
    (folder / "coder-windows-amd64.exe.gz").write_bytes(b"gzip bytes")
    (folder / f"{NAME}.asc").write_text("signature of the full")
    (folder / f"{NAME.replace('coder-', 'coder-slim-')}.asc").write_text("signature of the slim")
    (folder / "coder-linux-amd64.deb").write_bytes(b"!<arch>\n")
    return tmp_path


async def test_served_names(shelf: Path) -> None:
    async with running_coderd(site_dir=str(shelf)) as world:
        expected = {
            NAME: SLIM_FILE,
            "coder-full-linux-arm64": WHOLE,
            "coder-linux-armv7": SLIM_FILE,
            "coder-full-windows-amd64.exe": b"MZ" + bytes(998),
            "coder-linux-amd64.deb": b"!<arch>\n",
        }
        for name, body in expected.items():
            answer = await world.get(f"/bin/{name}", token="", headers={"Accept-Encoding": "identity"})
            assert answer.status_code == 200 and answer.content == body, name
            assert answer.headers["ETag"] == f'"{_sha1(body)}"'
            assert answer.headers["X-Original-Content-Length"] == str(len(body))
            checksum = (await world.get(f"/bin/{name}.sha256", token="")).text
            assert checksum == f"{hashlib.sha256(body).hexdigest()}  {name}\n"
        assert (await world.get("/bin/coder-full-linux-armv7", token="")).status_code == 404
        assert (await world.get("/bin/coder-slim-linux-arm64", token="")).status_code == 404
        for name in ("coder-linux-arm64", "coder-full-linux-arm64"):
            kind = "full" if "full" in name else "slim"
            assert (await world.get(f"/bin/{name}.asc", token="")).text == f"signature of the {kind}"
        assert (await world.get("/bin/coder-linux-armv7.asc", token="")).status_code == 404
        # The full file's signature covers other bytes than the program that is cut out of it.
        (shelf / f"bin/{NAME.replace('coder-', 'coder-slim-')}.asc").unlink()
        assert (await world.get(f"/bin/{NAME}.asc", token="")).status_code == 404
        assert (await world.get("/bin/coder-full-linux-arm64.asc", token="")).text == "signature of the full"
        (shelf / "bin/coder-linux-armv7.asc").write_text("signature of the file")
        assert (await world.get("/bin/coder-linux-armv7.asc", token="")).text == "signature of the file"
        missing = await world.get("/bin/coder-darwin-arm64", token="")
        assert missing.status_code == 404 and "pipx install FILE.whl" in missing.json()["detail"]
        missing = await world.get("/bin/coder-windows-arm64.exe", token="")
        assert missing.status_code == 404 and "no agent for Windows" in missing.json()["detail"]


async def test_anonymous_answers_contain_no_paths(shelf: Path) -> None:
    async with running_coderd(site_dir=str(shelf), cache_dir=shelf / "cache") as world:
        names = [*(f"coder-{os}-{arch}" for os, arch in PLATFORMS), "coder-windows-arm64.exe", "nothing", "a.deb"]
        for name in [f"{name}{suffix}" for name in names for suffix in ("", ".sha256", ".asc")]:
            answer = await world.get(f"/bin/{name}", token="")
            assert str(shelf) not in answer.text and str(Path.home()) not in answer.text, name
        assert str(shelf) not in (await world.get("/api/v2/programs", token="")).text


async def test_missing_signature_of_available_program(shelf: Path) -> None:
    async with running_coderd(site_dir=str(shelf)) as world:
        for name in ("coder-linux-armv7", "coder-linux-amd64.deb", "coder-windows-amd64.exe"):
            answer = await world.get(f"/bin/{name}.asc", token="")
            assert answer.status_code == 404 and "The program is available" in answer.json()["detail"], name
            assert "build.py" not in answer.text
        answer = await world.get("/bin/coder-darwin-arm64.asc", token="")
        assert answer.status_code == 404 and "build.py" in answer.json()["detail"]


async def test_available_programs_are_listed(shelf: Path) -> None:
    async with running_coderd(site_dir=str(shelf)) as world:
        listed = (await world.get("/api/v2/programs", token="")).json()
        assert [item["name"] for item in listed if item["available"]] == [
            "coder-linux-arm64",
            "coder-linux-armv7",
            "coder-windows-amd64.exe",
        ]
        for entry in listed:
            answer = await world.request("HEAD", f"/bin/{entry['name']}", token="")
            assert answer.status_code == (200 if entry["available"] else 404), entry
            assert entry["name"].startswith(f"coder-{entry['os']}-{entry['architecture']}")
            assert ("--site-dir" in entry["remedy"]) is not entry["available"]


async def test_ranges_join_to_the_whole(shelf: Path) -> None:
    size = len(SLIM_FILE)
    tail = size - 10
    cases = {
        "bytes=0-99": (0, 100),
        "bytes=100-": (100, size),
        f"bytes={tail}-{size + 99}": (tail, size),
        "bytes=-5": (size - 5, size),
        f"bytes=-{size * 2}": (0, size),
        "bytes=90-70": (0, size),
        "lines=1-2": (0, size),
        f"bytes=4000-{size - 3}": (4000, size - 2),
    }
    async with running_coderd(site_dir=str(shelf)) as world:
        for header, (first, end) in cases.items():
            answer = await world.get(f"/bin/{NAME}", token="", headers={"Range": header})
            assert answer.content == SLIM_FILE[first:end], header
            whole = (first, end) == (0, size)
            assert answer.status_code == (200 if whole else 206), header
            assert answer.headers.get("Content-Range") == (None if whole else f"bytes {first}-{end - 1}/{size}")
        etag = answer.headers["ETag"]  # type: ignore[possibly-undefined]
        outside = await world.get(f"/bin/{NAME}", token="", headers={"Range": f"bytes={size}-"})
        assert outside.status_code == 416 and outside.headers["Content-Range"] == f"bytes */{size}"
        for endless in ("9" * 5000 + "-", "0-" + "9" * 5000, "-" + "9" * 5000, "9" * 5000 + "-" + "9" * 5000):
            answer = await world.get(f"/bin/{NAME}", token="", headers={"Range": f"bytes={endless}"})
            assert answer.status_code in {200, 206, 416}, endless[:10]
        changed = {"Range": "bytes=10-", "If-Range": '"of an older file"'}
        assert (await world.get(f"/bin/{NAME}", token="", headers=changed)).content == SLIM_FILE
        same = {"Range": "bytes=10-", "If-Range": etag}
        assert (await world.get(f"/bin/{NAME}", token="", headers=same)).content == SLIM_FILE[10:]
        assert (await world.get(f"/bin/{NAME}", token="", headers={"If-None-Match": etag})).status_code == 304


async def test_compression_follows_accept_encoding(shelf: Path) -> None:
    path = "/bin/coder-windows-amd64.exe"
    cases = {
        "gzip, zstd": "zstd",
        "gzip": "gzip",
        "zstd;q=0, gzip": "gzip",
        "br": "",
        "identity": "",
        "zstd;q=0.000": "",
    }
    tags = set()
    plain = f'"{_sha1(b"MZ" + bytes(998))}"'
    async with running_coderd(site_dir=str(shelf)) as world:
        for accepted, chosen in cases.items():
            answer = await world.request("HEAD", path, token="", headers={"Accept-Encoding": accepted})
            assert answer.headers.get("Content-Encoding", "") == chosen, accepted
            assert answer.headers["Content-Length"] == ("10" if chosen else "1000")
            assert answer.headers["X-Original-Content-Length"] == "1000", "of the program, whatever travels"
            tags.add(answer.headers["ETag"])
            for known in (answer.headers["ETag"], plain, f"W/{plain}", f'"other", {plain}', "*"):
                headers = {"Accept-Encoding": accepted, "If-None-Match": known}
                same = await world.get(path, token="", headers=headers)
                assert same.status_code == 304, (accepted, known)
                assert same.headers["ETag"] == answer.headers["ETag"]
            other = {"Accept-Encoding": accepted, "If-None-Match": '"other"'}
            assert (await world.request("HEAD", path, token="", headers=other)).status_code == 200
        assert len(tags) == 3
        for suffix in (".zst", ".gz"):  # a file older than the program belongs to another program
            os.utime(shelf / f"{path[1:]}{suffix}", (0, 0))
        answer = await world.request("HEAD", path, token="", headers={"Accept-Encoding": "gzip"})
        assert "Content-Encoding" not in answer.headers


async def test_foreign_program_is_compressed_on_request(shelf: Path) -> None:
    program = b"\x7fELF" + b"code that repeats itself " * 60_000
    (shelf / "bin" / "coder-linux-amd64").write_bytes(program)
    (shelf / "bin" / NAME).write_bytes(packing.full_program(LAUNCHER, bytes(MIN_SIZE), REST))
    async with running_coderd(site_dir=str(shelf), cache_dir=shelf / "cache") as world:
        as_it_is = await world.get("/bin/coder-linux-amd64", token="", headers={"Accept-Encoding": "identity"})
        assert as_it_is.content == program and "Content-Encoding" not in as_it_is.headers
        packed = await world.get("/bin/coder-linux-amd64", token="", headers={"Accept-Encoding": "zstd, gzip"})
        assert packed.headers["Content-Encoding"] == "gzip" and packed.content == program  # httpx unpacks it
        assert int(packed.headers["Content-Length"]) < len(program) // 10
        assert packed.headers["X-Original-Content-Length"] == str(len(program))
        for name in (NAME, "coder-full-linux-arm64"):  # a compressed payload: cutting it out is useless
            ours = await world.request("HEAD", f"/bin/{name}", token="", headers={"Accept-Encoding": "gzip"})
            assert "Content-Encoding" not in ours.headers
    assert [path.name for path in (shelf / "cache" / "compressed").iterdir()] == [f"{_sha1(program)}.gz"]


def _sha1(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()
