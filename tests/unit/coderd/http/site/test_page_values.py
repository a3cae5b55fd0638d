"""Another single-page application instead of the dashboard, and the values in its page."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path

from coder.coderd.http.site.page_values import NAMES
from coder.coderd.services.foundation.documentation import documentation_url
from tests.kit.server.server_in_process import running_coderd

PAGE = """<!doctype html><html><head><meta property="user" content="{{ .User }}">
<meta content='' property='build-info'/>
<meta name="application-name" content="{{ .ApplicationName }}"><title>{{- .ApplicationName -}}</title>
<meta property="tasks-tab-visible" content="{{ .TasksTabVisible }}"><i>{{ .CSRF.Token }}{{ .Unheard.Of }}</i>
<meta property="og:title" content="mine" /></head><body>app</body></html>"""

ASKED_OTHERWISE = {
    "build-info": "/api/v2/buildinfo",
    "user": "/api/v2/users/me",
    "entitlements": "/api/v2/entitlements",
    "appearance": "/api/v2/appearance",
    "userAppearance": "/api/v2/users/me/appearance",
    "experiments": "/api/v2/experiments",
    "regions": "/api/v2/regions",
    "organizations": "/api/v2/users/me/organizations",
}
"""Routes a page would request if a tag were empty."""


async def test_tags_are_filled_or_added(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(PAGE)
    (tmp_path / "app.js").write_text("1")
    async with running_coderd(first_user=True, site_dir=str(tmp_path), web_terminal_renderer="webgl") as world:
        assert (await world.get("/app.js", token="")).text == "1"
        text = (await world.get("/any/page", token="")).text
        assert "{{" not in text and "<title>Coder</title>" in text
        assert '<meta name="application-name" content="Coder">' in text
        public = _values(text)
        assert public["web-terminal-renderer"] == "webgl"
        assert set(public) == {*NAMES, "og:title"}
        assert public["user"] == "" and public["organizations"] == ""
        assert json.loads(public["build-info"]) == (await world.get("/api/v2/buildinfo")).json()
        cookies = {"Cookie": f"coder_session_token={world.token}"}
        mine = _values((await world.get("/", token="", headers=cookies)).text)
        for name, path in ASKED_OTHERWISE.items():
            assert _settled(json.loads(mine[name])) == _settled((await world.get(path)).json()), name
        assert mine["csrf-token"] and mine["og:title"] == "mine"
        assert {name for name in NAMES if not mine[name]} == {"permissions", "logo-url"}, "no logo is set"
        assert (mine["docs-url"], mine["application-name"]) == (documentation_url(world.ctx), "Coder")
        assert (mine["ai-tasks-enabled"], mine["tasks-tab-visible"], mine["ai-gateway-enabled"]) == (
            "true",
            "true",
            "false",
        )
        world.ctx.config = replace(world.ctx.config, hide_ai_tasks=True)
        for headers in ({}, cookies):
            hidden = _values((await world.get("/", token="", headers=headers)).text)
            assert (hidden["ai-tasks-enabled"], hidden["tasks-tab-visible"]) == ("false", "false")


def _settled(value: object) -> object:
    """Return the value without the parts that differ between requests."""
    return {name: value[name] for name in value if name != "refreshed_at"} if isinstance(value, dict) else value


def _values(page: str) -> dict[str, str]:
    """Return each property once; `name` is another attribute. Raises AssertionError for a repeated one."""
    results: dict[str, str] = {}
    for tag in re.findall(r"<meta[^>]*\bproperty=[^>]*>", page):
        name = re.search(r"property=[\"']([^\"']*)", tag)
        value = re.search(r"content=(?:\"([^\"]*)\"|'([^']*)')", tag)
        assert name is not None and value is not None and name[1] not in results, tag
        results[name[1]] = html.unescape(value[1] or value[2] or "")
    return results
