"""Content of /icon and /emojis: an archive of drawings, and the names templates use."""

from __future__ import annotations

import re
import runpy
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from coder.coderd.http.site import pictures
from tests.kit.server.server_in_process import running_coderd
from tests.kit.server.server_process import ROOT

BUILT = ROOT / "coder/dashboard/dist/pictures.zip"
NAME = re.compile(r"/(?:icon|emojis)/[a-z0-9.-]+\.(?:svg|png)")
SCRIPT = ROOT / "scripts/dashboard_pictures.py"
IN_SOURCES = ("coder/coderd/services", "coder/coderd/examples", "coder/domain")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    made = tmp_path / "pictures.zip"
    with zipfile.ZipFile(made, "w") as target:
        target.writestr("icon/docker.svg", "<svg/>")
        target.writestr("icon/index.json", "[]")
        target.writestr("emojis/25b6.png", "<svg />")
    return made


@pytest.mark.parametrize("path", ["icon/docker.svg", "icon/docker.png", "emojis/25b6.png", "emojis/25b6-fe0f.png"])
def test_drawing_has_both_suffixes(archive: Path, path: str) -> None:
    position = pictures.find(archive, path)
    assert position is not None and position[0].startswith(b"<svg") and position[1].startswith("image/svg+xml")
    assert position == pictures.find(archive, path)


@pytest.mark.parametrize("path", ["icon/nothing.svg", "icon/docker", "icon/docker.json", "icon/", "../icon/docker.svg"])
def test_other_requests_are_not_found(archive: Path, path: str) -> None:
    assert pictures.find(archive, path) is None


def test_missing_archive_has_no_pictures(tmp_path: Path) -> None:
    assert pictures.find(tmp_path / "none.zip", "icon/docker.svg") is None


def named_in_sources() -> set[str]:
    files = [path for place in IN_SOURCES for path in (ROOT / place).rglob("*") if path.suffix in {".py", ".tf", ".md"}]
    return {name for path in files for name in NAME.findall(path.read_text(encoding="utf-8"))}


@pytest.mark.skipif(not BUILT.is_file(), reason="the dashboard is not built")
def test_own_picture_names_exist() -> None:
    names = named_in_sources()
    assert "/icon/code.svg" in names
    assert [name for name in sorted(names) if pictures.find(BUILT, name[1:]) is None] == []


@pytest.mark.skipif(not BUILT.is_file(), reason="the dashboard is not built")
def test_pictures_contain_no_scripts() -> None:
    with zipfile.ZipFile(BUILT) as archive:
        names = [name for name in archive.namelist() if not name.endswith(".json")]
        assert len(names) > 1000
        for name in names:
            # From packages pinned by their hash, without entities.
            root = ElementTree.fromstring(archive.read(name))  # noqa: S314
            assert root.tag.endswith("}svg"), name
            assert not [item.tag for item in root.iter() if item.tag.endswith(("}script", "}foreignObject"))], name
            assert not [key for item in root.iter() for key in item.attrib if key.startswith("on")], name


@pytest.mark.skipif(not BUILT.is_file(), reason="the dashboard is not built")
async def test_pictures_are_public() -> None:
    async with running_coderd(first_user=True) as world:
        for path in ("/icon/docker.svg", "/icon/docker.png", "/emojis/1f4e6.png"):
            answer = await world.get(path, token="")
            assert answer.status_code == 200 and answer.headers["content-type"].startswith("image/svg+xml"), path
            assert answer.text.startswith("<svg") and "default-src" in answer.headers["content-security-policy"]
        listed = (await world.get("/icon/index.json", token="")).json()
        assert {"path": "/icon/docker.svg", "words": "container"} in listed
        for item in listed[:5]:
            assert (await world.get(item["path"], token="")).status_code == 200


@pytest.mark.parametrize(
    ("drawing", "body", "seen"),
    [
        ("apple", '<path d="M0"/>', '<g fill="#7d8590"><path d="M0"/></g>'),
        ("anthropic-icon", '<path fill="#181818"/><path fill="#111"/>', '<path fill="#7d8590"/><path fill="#7d8590"/>'),
        ("aws", '<path fill="#252f3e"/><path fill="#f90"/>', '<path fill="#7d8590"/><path fill="#f90"/>'),
        ("javascript", '<path fill="#f7df1e"/><path fill="#323330"/>', '<path fill="#f7df1e"/><path fill="#323330"/>'),
        ("helm", '<path fill="#0f1689"/>', '<path fill="#7d8590"/>'),
        ("docker", '<path fill="#1d63ed"/>', '<path fill="#1d63ed"/>'),
    ],
)
def test_black_pictures_are_visible_on_dark(drawing: str, body: str, seen: str) -> None:
    made = runpy.run_path(str(SCRIPT))
    assert made["seen_on_both"](drawing, body) == seen
