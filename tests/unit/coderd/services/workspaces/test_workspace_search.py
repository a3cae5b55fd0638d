"""The query of the list of workspaces, and what a scoped key may list."""

from typing import Any

from tests.kit.server.workspaces import build, new_workspace, workspace_world


async def test_search_terms() -> None:
    async with workspace_world() as (world, _):
        await world.member("alice")
        await new_workspace(world, "one", rich_parameter_values=[{"name": "region", "value": "us"}])
        two = await new_workspace(world, "two", user="alice")
        await build(world, two["id"], "stop")
        await new_workspace(world, "three", user="alice", rich_parameter_values=[{"name": "cpu", "value": "4"}])

        async def names(query: str, **page: str) -> list[str]:
            answer = await world.get("/api/v2/workspaces", params={"q": query, **page})
            assert answer.status_code == 200, answer.text
            return [item["name"] for item in answer.json()["workspaces"]]

        assert await names("") == ["one", "three", "two"]  # running first, then owner and name
        assert await names("", limit="1", offset="1") == ["three"]
        assert await names("owner:me") == ["one"]
        assert await names("owner:ALICE") == ["three", "two"]
        assert await names("alice/tw") == ["two"]
        assert await names("name:HRE") == ["three"]
        assert await names("status:stopped") == ["two"]
        assert await names("status:running owner:alice") == ["three"]
        assert await names("template:full") == ["one", "three", "two"]
        assert await names("template:none") == []
        assert await names("param:region=us param:cpu=4") == ["one", "three"]
        assert await names("param:cpu") == ["one", "three", "two"]
        assert await names("param:cpu param:cpu=4") == ["three"]
        assert await names("param:c_U") == await names("param:c%") == ["one", "three", "two"]
        assert await names("param:_") == await names("param:cpu\\") == await names("param:c%=4") == []
        assert await names("has-agent:connecting") == ["one", "three"]
        assert await names("healthy:true") == []
        assert await names("outdated:false") == ["one", "three", "two"]
        assert await names("has_external_agent:true") == []
        assert await names(f"id:{two['id']}") == ["two"]
        assert await names('last_used_before:"2020-01-01T00:00:00Z"') == []
        assert await names("organization:coder has-ai-task:false") == ["one", "three", "two"]
        assert await names("name:%") == ["one", "three", "two"]
        assert await names("name:_wo") == await names("name:t%o") == ["two"]
        assert await names("name:\\") == await names("name:\\%") == []
        beyond = await world.get("/api/v2/workspaces", params={"offset": "100"})
        assert beyond.json() == {"workspaces": [], "count": 3}
        refused = await world.get("/api/v2/workspaces", params={"q": "colour:red dormant:maybe organization:nope"})
        assert refused.status_code == 400
        assert {item["field"] for item in refused.json()["validations"]} == {"colour", "dormant", "organization"}
        assert (await world.get("/api/v2/workspaces", params={"limit": "x"})).status_code == 400


async def test_page_costs_fixed_number_of_statements() -> None:
    async with workspace_world() as (world, _):
        for number in range(6):
            await new_workspace(world, f"w{number}")
        from sqlalchemy import event

        engine = world.ctx.db.engine.sync_engine
        statements: list[str] = []
        event.listen(engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
        for limit in ("1", "6"):
            statements.clear()
            answer = await world.get("/api/v2/workspaces", params={"limit": limit})
            assert len(answer.json()["workspaces"]) == int(limit)
            assert len(statements) <= 8, statements


async def test_scoped_key_limits_list() -> None:
    async with workspace_world() as (world, _):
        first = await new_workspace(world, "one")
        await new_workspace(world, "two")

        async def names(**body: Any) -> list[str]:
            created = await world.post("/api/v2/users/me/keys/tokens", body)
            assert created.status_code == 201, created.text
            listed = await world.get("/api/v2/workspaces", token=created.json()["key"])
            return [item["name"] for item in listed.json()["workspaces"]]

        assert await names(token_name="all") == ["one", "two"]
        assert await names(token_name="templates", scopes=["template:read"]) == []
        assert await names(token_name="reader", scopes=["workspace:read"]) == ["one", "two"]
        limited = [f"workspace:{first['id']}"]
        assert await names(token_name="one", scopes=["workspace:read"], allow_list=limited) == ["one"]
