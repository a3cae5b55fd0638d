"""The documentation under /docs: its files, its policy, and what a server without it says."""

from __future__ import annotations

import base64
import gzip
import hashlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from coder.coderd.services.foundation import documentation
from tests.kit.server.server_in_process import World, running_coderd

ROOT = Path(__file__).resolve().parents[5]
_SPEC = importlib.util.spec_from_file_location("docs_archive", ROOT / "scripts/docs_archive.py")
assert _SPEC and _SPEC.loader
docs_archive = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(docs_archive)

INLINE = 'var x = "é";'
START = (
    f'<!doctype html><script src="a.js"></script><script>{INLINE}</script><script type="application/json">1</script>'
)
HASH = f"'sha256-{base64.b64encode(hashlib.sha256(INLINE.encode()).digest()).decode()}'"
STYLE = "assets/stylesheets/main.57a0d79d.min.css"


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    site = tmp_path / "site"
    for name, text in {
        "index.html": START,
        "guides/index.html": "<p>guides</p>" * 100,
        STYLE: "body{}",
        "assets/javascripts/bundle.js.map": "map",
        "search/search_index.json": "{}",
    }.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text, encoding="utf-8")
    target = tmp_path / "documentation.zip"
    docs_archive.pack(site, target)
    first = target.read_bytes()
    docs_archive.pack(site, target)
    assert target.read_bytes() == first, "the same site gives the same archive"
    monkeypatch.setattr(documentation, "ARCHIVE", target)
    yield target


async def raw(world: World, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and the body as sent."""
    request = world.client.build_request("GET", path, headers=headers)
    answer = await world.client.send(request, stream=True)
    try:
        return answer.status_code, dict(answer.headers), b"".join([chunk async for chunk in answer.aiter_raw()])
    finally:
        await answer.aclose()


async def test_pages_follow_rules_of_assets(archive: Path) -> None:
    assert docs_archive.is_current(archive)
    async with running_coderd(first_user=True) as world:
        status, headers, _ = await raw(world, "/docs")
        assert (status, headers["location"]) == (307, "/docs/")
        status, headers, body = await raw(world, "/docs/", **{"Accept-Encoding": "gzip"})
        assert status == 200 and headers["content-encoding"] == "gzip"
        assert gzip.decompress(body).decode() == START
        assert f"script-src 'self' {HASH};" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-cache" and "Accept-Encoding" in headers["vary"]
        again, _, empty = await raw(world, "/docs/", **{"If-None-Match": headers["etag"]})
        assert (again, empty) == (304, b"")
        status, headers, body = await raw(world, "/docs/guides/", **{"Accept-Encoding": "identity"})
        assert body.startswith(b"<p>guides") and "content-encoding" not in headers
        _, headers, _ = await raw(world, f"/docs/{STYLE}")
        assert "immutable" in headers["cache-control"] and headers["content-type"].startswith("text/css")
        for path in ("nope.html", "scripts.txt", "../index.html", "assets/javascripts/bundle.js.map"):
            status, _, body = await raw(world, f"/docs/{path}".replace("..", "%2e%2e"))
            assert status == 404 and b'href="/docs/"' in body, path
        help_page = documentation.troubleshooting_url(world.ctx)
        assert help_page == f"{world.ctx.access_url}/docs/guides/troubleshooting.html#agents"
        assert (ROOT / "docs/guides/troubleshooting.md").is_file()
        appearance = (await world.get("/api/v2/appearance")).json()
        assert appearance["docs_url"] == f"{world.ctx.access_url}/docs"


async def test_missing_documentation_names_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documentation, "ARCHIVE", tmp_path / "none.zip")
    assert not docs_archive.is_current(tmp_path / "none.zip")
    async with running_coderd(first_user=True) as world:
        status, _, body = await raw(world, "/docs/")
        assert status == 404 and b"scripts/docs --pack" in body and b"--docs-url" in body
        assert (await world.get("/api/v2/appearance")).json()["docs_url"] == world.ctx.config.docs_url


async def test_configured_address_wins(archive: Path) -> None:
    async with running_coderd(first_user=True, docs_url="https://docs.example.com") as world:
        assert (await world.get("/api/v2/appearance")).json()["docs_url"] == "https://docs.example.com"
