"""Responses have exactly the public shapes."""

from __future__ import annotations

from tests.kit.api.api_description import check, check_list
from tests.kit.server.server_in_process import World, running_coderd

ONE = {
    "/api/v2/buildinfo": "BuildInfoResponse",
    "/api/v2/users/me": "User",
    "/api/v2/users": "GetUsersResponse",
    "/api/v2/users/authmethods": "AuthMethods",
    "/api/v2/users/me/roles": "UserRoles",
    "/api/v2/users/me/login-type": "UserLoginType",
    "/api/v2/users/me/appearance": "UserAppearanceSettings",
    "/api/v2/users/me/preferences": "UserPreferenceSettings",
    "/api/v2/users/me/gitsshkey": "GitSSHKey",
    "/api/v2/users/me/keys/tokens/tokenconfig": "TokenConfig",
    "/api/v2/organizations/default": "Organization",
    "/api/v2/organizations/default/members/me": "OrganizationMemberWithUserData",
    "/api/v2/organizations/default/paginated-members": "PaginatedMembersResponse",
    "/api/v2/updatecheck": "UpdateCheckResponse",
    "/api/v2/deployment/ssh": "SSHConfigResponse",
    "/api/v2/entitlements": "Entitlements",
    "/api/v2/appearance": "AppearanceConfig",
    "/api/v2/applications/host": "AppHostResponse",
    "/api/v2/experiments/available": "AvailableExperiments",
    "/api/v2/notifications/inbox": "ListInboxNotificationsResponse",
}
MANY = {
    "/api/v2/organizations": "Organization",
    "/api/v2/users/me/organizations": "Organization",
    "/api/v2/organizations/default/members": "OrganizationMemberWithUserData",
    "/api/v2/users/roles": "AssignableRoles",
    "/api/v2/organizations/default/members/roles": "AssignableRoles",
    "/api/v2/users/me/keys/tokens": "APIKeyWithOwner",
}


async def _populated(world: World) -> None:
    await world.first_user()
    await world.member("alice")
    created = await world.post("/api/v2/users/me/keys/tokens", {"token_name": "ci"})
    assert created.status_code == 201


async def test_every_answer_has_its_shape() -> None:
    async with running_coderd() as world:
        await _populated(world)
        for path, name in ONE.items():
            answer = await world.get(path)
            assert answer.status_code == 200, (path, answer.text)
            check(name, answer.json())
        for path, name in MANY.items():
            answer = await world.get(path)
            assert answer.status_code == 200, (path, answer.text)
            assert answer.json(), path
            check_list(name, answer.json())


async def test_signed_out_callers_get_401() -> None:
    public = {"/api/v2/buildinfo", "/api/v2/users/authmethods", "/api/v2/updatecheck", "/api/v2/entitlements"}
    async with running_coderd() as world:
        for path in {*ONE, *MANY} - public:
            answer = await world.get(path, token="")
            assert answer.status_code == 401, (path, answer.text)
            check("Response", answer.json())
