"""`coder open app`: other users control the address that the desktop opens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.kit.api.api_description import described
from tests.kit.programs.command_line import Result, run_cli
from tests.kit.stand_ins.scripted_http_servers import odd_server, reply

REGION = {"name": "primary", "path_app_url": "https://coder.test", "wildcard_hostname": ""}


async def _open(url: str, home: Path, region: str = "") -> Result:
    def answer(method: str, path: str) -> bytes:
        found: Any = described(method, path)
        if "/regions" in path:
            found = {"regions": [{**found["regions"][0], **REGION, **({"path_app_url": region} if region else {})}]}
        elif "/workspace" in path:
            workspace = found["workspaces"][0] if "workspaces" in found else found
            resource = workspace["latest_build"]["resources"][0]
            agent = resource["agents"][0]
            agent["apps"] = [{**agent["apps"][0], "slug": "x", "external": not region, "url": url}]
            workspace["latest_build"]["resources"] = [{**resource, "agents": [agent]}]
        return reply(json.dumps(found))

    with odd_server() as server:
        server.answer = answer
        env = {
            "CODER_URL": server.url,
            "CODER_SESSION_TOKEN": "AAAAAAAAAA-BBBBBBBBBBBBBBBBBBBBBB",
            "CODER_NO_OPEN": "true",
        }
        result = await run_cli(["open", "app", "w", "x"], home=home, env=env)
        assert server.failed is None
        return result


async def test_external_app_is_link(tmp_path: Path) -> None:
    result = await _open("jetbrains://open?token=$SESSION_TOKEN", tmp_path)
    assert (result.code, "AAAAAAAAAA" in result.stdout + result.stderr) == (0, False), result.stderr


@pytest.mark.parametrize("url", ["file:///tmp/x.desktop", "C:\\x.exe", "\\\\host\\x.exe", "--help", " javascript:x"])
async def test_local_schemes_are_not_opened(url: str, tmp_path: Path) -> None:
    result = await _open(url, tmp_path)
    assert result.code == 1 and "the address of" in result.stderr and "Opening" not in result.stderr


@pytest.mark.parametrize("region", ["file:///tmp", "--help", "javascript:x//", "vscode://x", "C:\\x"])
async def test_region_that_is_no_page_is_not_opened(region: str, tmp_path: Path) -> None:
    result = await _open("", tmp_path, region)
    assert result.code == 1 and "the address of" in result.stderr and "Opening" not in result.stderr
