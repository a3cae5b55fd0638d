"""`coder login` inside a workspace, with the session token that its template got."""

from __future__ import annotations

from pathlib import Path

import pytest

from coder.domain.access.build_tokens import NARROWED
from tests.kit.programs.command_line import run_cli
from tests.kit.server.elsewhere import elsewhere


@pytest.mark.parametrize("stored", [True, False], ids=["token itself", "session of its own"])
async def test_login_with_builds_token(tmp_path: Path, stored: bool) -> None:
    async with elsewhere() as result:
        boss = result.tokens["boss"]
        own = await result.world.post(
            "/api/v2/users/me/workspaces", {"template_id": result.template["id"], "name": "mine"}, token=boss
        )
        assert own.status_code == 201, own.text
        other = await result.create("insider")
        await result.create("boss")
        env = {"CODER_URL": result.world.url, "CODER_SESSION_TOKEN": result.token_of_build}
        way = ["--use-token-as-session"] if stored else []
        entered = await run_cli(["login", result.world.url, *way], home=tmp_path, env=env)
        assert entered.code == 0, entered.stderr
        home = {"CODER_URL": result.world.url}
        assert "boss" in (await run_cli(["whoami"], home=tmp_path, env=home)).stdout
        listed = await run_cli(["list", "--all"], home=tmp_path, env=home)
        # The administrator's own role belongs to the template's organization, and is kept.
        assert "boss/mine" in listed.stdout and f"insider/{other['name']}" in listed.stdout, listed.stdout
        made = await run_cli(["tokens", "create", "--name", "again"], home=tmp_path, env=home)
        assert made.code == 0, made.stderr


async def test_refusal_suggests_login(tmp_path: Path) -> None:
    async with elsewhere() as result:
        world = result.world
        await result.add("chief", result.organization)
        assert (await world.put("/api/v2/users/chief/roles", {"roles": ["owner"]})).status_code == 200
        await result.create("chief")
        env = {"CODER_URL": world.url, "CODER_SESSION_TOKEN": result.token_of_build}
        for words in (["users", "show", "outsider"], ["users", "delete", "outsider"]):
            refused = await run_cli(words, home=tmp_path, env=env)
            assert refused.code == 1 and NARROWED in refused.stderr, (words, refused)
