"""Sources of the dashboard's pages beyond their own server; compressed copies of assets."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from coder.coderd.http.site import dashboard_files
from coder.coderd.http.site.dashboard_files import _proxy_sources
from tests.kit.server.server_in_process import running_coderd


def sources(url: str, wildcard: str = "", derp_only: bool = False) -> tuple[tuple[str, ...], tuple[str, ...]]:
    row = SimpleNamespace(url=url, wildcard_hostname=wildcard, derp_only=derp_only)
    health = SimpleNamespace(healthy_proxies=lambda: (row,))
    services = SimpleNamespace(api=SimpleNamespace(proxy_health=health))
    return _proxy_sources(cast("Any", SimpleNamespace(services=services)))


def test_proxy_is_a_page_source() -> None:
    assert sources("https://sydney.test", "*.sydney.test") == (
        ("https://sydney.test", "wss://sydney.test"),
        ("sydney.test", "*.sydney.test"),
    )
    assert sources("http://10.0.0.7:3001")[0] == ("http://10.0.0.7:3001", "ws://10.0.0.7:3001")


@pytest.mark.parametrize("url", ["https://a; script-src *", "https://a b", "https://*'none'", "https:///path"])
def test_invalid_address_adds_no_directive(url: str) -> None:
    assert sources(url) == ((), ())


def test_invalid_wildcard_frames_nothing() -> None:
    assert sources("https://a.test", "*.a.test; object-src *") == (("https://a.test", "wss://a.test"), ("a.test",))


def test_relay_proxy_is_no_page_source() -> None:
    assert sources("https://a.test", "*.a.test", derp_only=True) == ((), ())


@pytest.mark.parametrize(
    ("accepted", "coding", "sent"),
    [("gzip, br", "br", b"B"), ("gzip", "gzip", b"G"), ("br;q=0, gzip", "gzip", b"G"), ("identity", None, b"let a")],
)
async def test_asset_is_sent_compressed(tmp_path: Path, accepted: str, coding: str | None, sent: bytes) -> None:
    folder = tmp_path / "assets"
    folder.mkdir()
    for name, data in (("a-1.js", b"let a"), ("a-1.js.br", b"B"), ("a-1.js.gz", b"G"), ("b-1.woff2", b"font")):
        (folder / name).write_bytes(data)
    async with running_coderd(site_dir=str(tmp_path)) as world:
        stream = world.client.stream("GET", "/assets/a-1.js", headers={"Accept-Encoding": accepted})
        async with stream as answer:
            received = b"".join([part async for part in answer.aiter_raw()])
        assert (answer.headers.get("Content-Encoding"), received) == (coding, sent)
        assert "Accept-Encoding" in answer.headers["Vary"]
        assert answer.headers["Content-Type"] == "text/javascript; charset=utf-8"
        again = {"Accept-Encoding": accepted, "If-None-Match": answer.headers["ETag"]}
        kept = await world.client.get("/assets/a-1.js", headers=again)
        assert (kept.status_code, "Accept-Encoding" in kept.headers["Vary"]) == (304, True)
        font = await world.client.get("/assets/b-1.woff2", headers={"Accept-Encoding": accepted})
        assert "Content-Encoding" not in font.headers and "Accept-Encoding" not in font.headers["Vary"]


def test_changed_file_is_read_again(tmp_path: Path) -> None:
    for name, text in (("a.js", "old"), ("a.js.gz", "packed")):
        (tmp_path / "assets").mkdir(exist_ok=True)
        (tmp_path / "assets" / name).write_text(text)
    loaded, copies = dashboard_files._read(tmp_path, "assets/a.js", 1)
    assert loaded is not None and loaded[0] == b"old" and [*copies] == ["gzip"]
    (tmp_path / "assets" / "a.js.gz").unlink()
    (tmp_path / "assets" / "a.js").write_text("changed")
    loaded, copies = dashboard_files._read(tmp_path, "assets/a.js", 2)
    assert loaded is not None and loaded[0] == b"changed" and not copies
    (tmp_path / "assets" / "a.js").unlink()
    assert dashboard_files._read(tmp_path, "assets/a.js", 3) == (None, {})
