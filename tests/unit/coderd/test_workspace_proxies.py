"""Workspace proxies as the site's administrators see them; licences, which nobody needs."""

from __future__ import annotations

from coder.base.secret import Secret
from tests.kit.coderd import running_coderd
from tests.kit.schema import check, check_list

PATH = "/api/v2/workspaceproxies"


async def test_a_proxy_from_birth_to_death() -> None:
    async with running_coderd(first_user=True) as world:
        _, token = await world.member("alice")
        body = {"name": "sydney", "display_name": "Sydney", "icon": "/emojis/1f1e6.png"}
        assert (await world.post(PATH, body, token=token)).status_code == 403
        made = await world.post(PATH, body)
        assert made.status_code == 201, made.text
        check("UpdateWorkspaceProxyResponse", made.json())
        proxy = made.json()["proxy"]
        assert made.json()["proxy_token"].startswith(f"{proxy['id']}:")
        listed = (await world.get(PATH, token=token)).json()["regions"]
        check_list("WorkspaceProxy", listed)
        assert [item["name"] for item in listed] == ["primary", "sydney"]
        assert (await world.post(PATH, {**body, "name": "Sydney"})).status_code == 409
        for name in ("primary", "", "a b"):
            assert (await world.post(PATH, {**body, "name": name})).status_code == 400, name
        change = {"id": proxy["id"], "name": "perth", "display_name": "", "icon": "", "regenerate_token": True}
        changed = (await world.patch(f"{PATH}/sydney", change)).json()
        assert changed["proxy"]["display_name"] == "Sydney"
        assert changed["proxy_token"] not in {"", made.json()["proxy_token"]}
        assert (await world.get(f"{PATH}/perth")).json()["status"]["status"] == "unregistered"
        assert (await world.delete(f"{PATH}/{proxy['id']}", token=token)).status_code == 403
        assert (await world.delete(f"{PATH}/{proxy['id']}")).status_code == 200
        assert (await world.get(f"{PATH}/perth")).status_code == 404


async def test_no_licence_is_needed_or_taken() -> None:
    async with running_coderd(first_user=True) as world:
        _, token = await world.member("alice")
        assert (await world.get("/api/v2/licenses")).json() == []
        for who, status in ((token, 403), (world.token, 400)):
            assert (await world.post("/api/v2/licenses", {"license": "x"}, token=who)).status_code == status
        assert (await world.delete("/api/v2/licenses/1")).status_code == 404
        assert (await world.post("/api/v2/licenses/trial", {})).status_code == 405
        check_list("Replica", (await world.get("/api/v2/replicas")).json())


async def test_the_configuration_is_a_tree_without_secrets() -> None:
    async with running_coderd(first_user=True, provisioner_daemon_psk=Secret("hush")) as world:
        answer = await world.get("/api/v2/deployment/config")
        assert "hush" not in answer.text
        config = answer.json()["config"]
        assert config["provisioner"]["daemon_psk"] == config["oidc"]["client_secret"] == ""
        assert config["session_lifetime"]["default_duration"] == 24 * 3600 * 10**9
        assert "browser_only" not in config, "what is off and may be left out is left out"
        assert (await world.put("/api/v2/appearance", {}, token=(await world.member("bob"))[1])).status_code == 403
