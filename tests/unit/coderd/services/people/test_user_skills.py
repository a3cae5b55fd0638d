"""Skills of users."""

from __future__ import annotations

from tests.kit.api.api_description import check, check_list
from tests.kit.server.server_in_process import running_coderd

PATH = "/api/experimental/users/me/skills"


def _skill(name: str = "review", description: str = "how to review") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\nLook twice.\n"


async def test_skill_lifecycle() -> None:
    async with running_coderd(first_user=True) as world:
        created = await world.post(PATH, {"content": _skill()})
        assert created.status_code == 201, created.text
        check("UserSkill", created.json())
        assert (await world.post(PATH, {"content": _skill()})).status_code == 409
        assert (await world.post(PATH, {"content": "x"})).status_code == 400
        check_list("UserSkillMetadata", (await world.get(PATH)).json())
        changed = await world.patch(f"{PATH}/review", {"content": _skill(description="better")})
        assert changed.json()["description"] == "better"
        assert (await world.patch(f"{PATH}/review", {"content": _skill("other")})).status_code == 400
        alice, token = await world.member("alice")
        assert (await world.get(PATH.replace("/me/", "/admin/"), token=token)).status_code == 404
        assert (await world.post(PATH, {"content": _skill()}, token=token)).status_code == 201
        others = PATH.replace("/me/", f"/{alice}/")
        assert (await world.get(f"{others}/review")).status_code == 200, "an owner of the site may read"
        assert (await world.patch(f"{others}/review", {"content": _skill()})).status_code == 403
        assert (await world.delete(f"{PATH}/review")).status_code == 204
        assert (await world.get(f"{PATH}/review")).status_code == 404
