"""Files of a workspace as one archive."""

from __future__ import annotations

import io
import json
import os
import tarfile
import threading
from pathlib import Path
from typing import Any

import pytest
import trio

from coder.agent.network import file_bundle
from coder.agent.network.http_api import HttpApi
from coder.agent.network.http_messages import HttpReply, HttpRequest
from coder.agent.state import AgentState, Identity


async def bundled(home: Path, paths: Any) -> HttpReply:
    state = AgentState(identity=Identity("me", home, "/bin/sh"), token="t", url="http://x", executable="coder")
    state.directory = home
    request = HttpRequest("POST", "/api/v0/bundle-files", {}, json.dumps({"paths": paths}).encode())
    return await HttpApi(state)._answer(request)


def unpacked(reply: HttpReply) -> tuple[dict[str, bytes], Any]:
    """Return contents by name, and the manifest."""
    assert (reply.status, reply.kind) == (200, "application/x-tar"), reply.body
    with tarfile.open(fileobj=io.BytesIO(reply.body)) as archive:
        found = {one.name: archive.extractfile(one).read() for one in archive}  # type: ignore[union-attr]
    return found, json.loads(found.pop("manifest.json"))


async def test_archive_has_files_and_errors(tmp_path: Path) -> None:
    (tmp_path / "folder/deep").mkdir(parents=True)
    (tmp_path / "folder/deep/a").write_bytes(b"\x00\xff")
    (tmp_path / "folder/b").write_text("b")
    (tmp_path / "one").write_text("1")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("one")
    asked = ["~/one", str(tmp_path / "folder"), "pipe", "/dev/zero", str(tmp_path / "none"), "link"]
    found, manifest = unpacked(await bundled(tmp_path, asked))
    base = f"files{tmp_path}"
    assert found == {
        f"{base}/one": b"1",
        f"{base}/folder/b": b"b",
        f"{base}/folder/deep/a": b"\x00\xff",
        f"{base}/link": b"1",
    }
    assert manifest["requested"] == asked and manifest["truncated"] is False and manifest["limits"]["files"] == 2000
    assert [one["archive_path"] for one in manifest["files"]] == list(found)
    assert {one["path"]: one["error"] for one in manifest["errors"]} == {
        "pipe": "not a regular file",
        "/dev/zero": "not a regular file",
        str(tmp_path / "none"): "No such file or directory",
    }


async def test_limits_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MAX_FILE", 10), ("MAX_TOTAL", 25), ("MAX_FILES", 5)):
        monkeypatch.setattr(file_bundle, name, value)
    for number in range(9):
        (tmp_path / f"f{number}").write_bytes(b"x" * 11)
    found, manifest = unpacked(await bundled(tmp_path, [str(tmp_path)]))
    assert [len(content) for content in found.values()] == [10, 10]
    assert manifest["truncated"] and all(one["cut"] for one in manifest["files"])
    assert len(manifest["files"]) + len(manifest["errors"]) == 3, "the search stops at the first excess"


async def test_search_stops_at_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in range(30):
        (tmp_path / f"d{folder:02}").mkdir()
        (tmp_path / f"d{folder:02}/file").touch()
    listed: list[str] = []

    def scandir(folder: Any) -> Any:
        listed.append(Path(folder).name)
        return os_scandir(folder)

    os_scandir = os.scandir
    monkeypatch.setattr(os, "scandir", scandir)
    for limit, value, taken in (("MAX_FILES", 3, 3), ("MAX_ENTRIES", 34, 4), ("MAX_ENTRIES", 60, 30)):
        listed.clear()
        with monkeypatch.context() as patch:
            patch.setattr(file_bundle, limit, value)
            found, manifest = unpacked(await bundled(tmp_path, [str(tmp_path)] if value == 60 else [str(tmp_path)] * 9))
        assert len(found) == taken and len(listed) <= taken + 2 and manifest["truncated"] is (value != 60)


async def test_large_folder_is_truncated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_bundle, "MAX_ENTRIES", 5)
    for number in range(9):
        (tmp_path / f"f{number}").touch()
    found, manifest = unpacked(await bundled(tmp_path, [str(tmp_path)]))
    assert len(found) == 5 and manifest["truncated"]


async def test_special_files_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    opens: list[str] = []
    plain = os.open
    monkeypatch.setattr(os, "open", lambda path, *rest: opens.append(str(path)) or plain(path, *rest))
    _, manifest = unpacked(await bundled(tmp_path, ["pipe", "link", "/dev/null", str(tmp_path)]))
    assert [one["error"] for one in manifest["errors"]] == ["not a regular file"] * 5
    assert not [path for path in opens if "pipe" in path or "null" in path]


async def test_cancelled_search_frees_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        (tmp_path / f"f{number}").touch()
    looked, go_on, seen = threading.Event(), threading.Event(), list[str]()

    def stuck(path: Path, _left: int) -> bytes:
        seen.append(path.name)
        looked.set()
        go_on.wait()
        return b""

    limiter = trio.CapacityLimiter(1)
    monkeypatch.setattr(file_bundle, "read_regular", stuck)
    monkeypatch.setattr(file_bundle, "_LIMITER", limiter)
    others = trio.to_thread.current_default_thread_limiter()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bundled, tmp_path, [str(tmp_path)])
        await trio.to_thread.run_sync(looked.wait)
        assert (limiter.borrowed_tokens, others.borrowed_tokens) == (1, 0)
        nursery.cancel_scope.cancel()
    go_on.set()
    async with limiter:  # the thread has ended
        assert seen == ["f0"]


@pytest.mark.parametrize("odd", [None, [], "a", [""], [1], [None], {}, ["x"] * 257, ["a\0b"]])
async def test_invalid_requests_are_rejected(odd: Any, tmp_path: Path) -> None:
    assert (await bundled(tmp_path, odd)).status == 400
