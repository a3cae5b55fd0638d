"""The update check: what `/updatecheck` answers by the administrator's list of releases."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coder.api.site.deployment import UpdateCheckResponse
from coder.base.errors import CoderError
from coder.base.version import BUILD_VERSION
from coder.coderd.loops import release_check
from coder.coderd.services.site import release_check as service
from coder.coderd.services.site.release_check import ReleaseCheck
from tests.kit.programs.releases import Mirror
from tests.kit.server.server_in_process import running_coderd

PATH = "/api/v2/updatecheck"
OWN = {"current": True, "version": BUILD_VERSION, "url": "https://github.com/coder/coder"}


async def test_newest_release_is_reported(tmp_path: Path) -> None:
    """One server: before the check, with a newer release, with its notes, without a list, and with none newer."""
    mirror = Mirror(tmp_path)
    async with running_coderd(update_check=True, release_list=str(tmp_path)) as world:
        ctx = world.ctx
        check = ctx.services.api.release_check
        assert check.is_enabled()
        assert (await world.get(PATH, token="")).json() == OWN
        mirror.add("v2.35.0")
        assert await release_check.turn(ctx, ctx.log) == release_check.INTERVAL
        found = {"current": False, "version": "v2.35.0", "url": ""}
        assert (await world.get(PATH, token="")).json() == found
        mirror.add("v2.36.0", notes_url="https://example.com/notes")
        mirror.add("v3.0.0-rc.1")
        assert await check.refresh() and not await check.refresh(), "it is news once"
        found |= {"version": "v2.36.0", "url": "https://example.com/notes"}
        assert (await world.get(PATH, token="")).json() == found
        (tmp_path / "releases.json").write_text("half of")
        with pytest.raises(CoderError, match="invalid"):
            await release_check.turn(ctx, ctx.log)
        assert (await world.get(PATH, token="")).json() == found, "the last good list counts"
        (tmp_path / "releases.json").write_text('{"releases": []}')
        assert not await check.refresh()
        assert (await world.get(PATH, token="")).json() == OWN


@pytest.mark.parametrize(
    ("folder", "notes_url"),
    [
        ("v2.35.0", ""),
        ("https://mirror.internal/v2.35.0", ""),
        ("https://mirror.internal/v2.35.0", "https://example.com/notes"),
    ],
)
async def test_answer_never_names_the_mirror(folder: str, notes_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = {"releases": [{"version": "2.35.0", "folder": folder, "notes_url": notes_url}]}
    content = json.dumps(listed).encode()
    monkeypatch.setattr(service, "read_location", lambda *_: content)
    ctx: Any = SimpleNamespace(config=SimpleNamespace(release_list="https://mirror.internal/releases.json"))
    check = ReleaseCheck(ctx)
    assert await check.refresh()
    assert check.answer() == UpdateCheckResponse(current=False, version="v2.35.0", url=notes_url)


async def test_login_in_the_list_is_refused() -> None:
    ctx: Any = SimpleNamespace(config=SimpleNamespace(release_list="https://user:s3cret@mirror/releases.json"))
    with pytest.raises(CoderError, match="contains a user name or password") as caught:
        await ReleaseCheck(ctx).refresh()
    assert "s3cret" not in f"{caught.value} {caught.value.hint}" and "mounted folder" in caught.value.hint


@pytest.mark.parametrize(
    ("update_check", "release_list", "enabled"),
    [(True, "/releases", True), (True, "", False), (False, "/releases", False), (False, "", False)],
)
def test_check_needs_both_settings(update_check: bool, release_list: str, enabled: bool) -> None:
    ctx: Any = SimpleNamespace(config=SimpleNamespace(update_check=update_check, release_list=release_list))
    assert ReleaseCheck(ctx).is_enabled() is enabled
