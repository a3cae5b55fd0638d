"""Refusals whose status and words clients of the original compare, by kind: one table each, against one server."""

from __future__ import annotations

import json
from uuid import UUID

from sqlalchemy import text

from coder.coderd.store.engine.database import Tx
from tests.kit.server.server_in_process import World, running_coderd
from tests.kit.server.workspaces import new_workspace, workspace_world

UNKNOWN = "11111111-1111-4111-8111-111111111111"
CALLBACK = "http://localhost:19190/cb"
BAD_CLIENT = (401, {"error": "invalid_client", "error_description": "The client credentials are invalid"})
NO_CLIENT = (400, {"error": "invalid_request", "error_description": "Missing client_id parameter"})


def _wrong(error: str, description: str) -> tuple[int, dict[str, str]]:
    return 400, {"error": error, "error_description": description}


CODE, REFRESH = {"grant_type": "authorization_code"}, {"grant_type": "refresh_token"}
MALFORMED = "The request is missing required parameters or is otherwise malformed"
TOKEN_FORMS: list[tuple[dict[str, str], tuple[int, dict[str, str]]]] = [
    ({}, NO_CLIENT),
    (CODE, NO_CLIENT),
    ({**CODE, "client_id": "abc"}, BAD_CLIENT),
    ({**CODE, "client_id": UNKNOWN}, BAD_CLIENT),
    ({"client_id": "{app}"}, _wrong("unsupported_grant_type", "The grant type is missing or not supported")),
    (
        {"client_id": "{app}", "grant_type": "password"},
        _wrong("unsupported_grant_type", "The grant type is missing or not supported"),
    ),
    ({**CODE, "client_id": "{app}"}, _wrong("invalid_request", "Missing required parameter: code")),
    ({**REFRESH, "client_id": "{app}"}, _wrong("invalid_request", MALFORMED)),
    ({**CODE, "client_id": "{app}", "code": "x", "client_secret": "x"}, BAD_CLIENT),
    (
        {**CODE, "client_id": "{app}", "code": "x", "client_secret": "{secret}"},
        _wrong("invalid_grant", "The authorization code is invalid or expired"),
    ),
    (
        {**REFRESH, "client_id": "{app}", "refresh_token": "x", "client_secret": "{secret}"},
        _wrong("invalid_grant", "The refresh token is invalid or expired"),
    ),
]
REVOCATION_FORMS: list[tuple[dict[str, str], tuple[int, dict[str, str]]]] = [
    ({}, NO_CLIENT),
    ({"token": "x"}, NO_CLIENT),
    ({"token": "x", "client_id": UNKNOWN}, BAD_CLIENT),
    ({"client_id": "{app}"}, _wrong("invalid_request", "missing token parameter")),
    ({"token": "x", "client_id": "{app}", "client_secret": "x"}, BAD_CLIENT),
]
_EMPTY = '{0}: Query param "{0}" is required and cannot be empty'
CONSENTS: list[tuple[dict[str, str], str, str]] = [
    ({"response_type": "code"}, "invalid_request", f"Invalid query params: {_EMPTY.format('code_challenge')}"),
    (
        {},
        "invalid_request",
        f"Invalid query params: {_EMPTY.format('response_type')}, {_EMPTY.format('code_challenge')}",
    ),
    (
        {"response_type": "token", "code_challenge": "a" * 43},
        "unsupported_response_type",
        "Only response_type=code is supported",
    ),
]
STREAMS = {
    "/api/v2/derp-map": ("Failed to accept websocket.", ""),
    "/api/v2/tailnet?version=2.0": ("Failed to accept websocket.", ""),
    "/api/v2/notifications/inbox/watch": ("Failed to upgrade connection to websocket.", ""),
    "/api/v2/templateversions/{version}/dynamic-parameters": ("Failed to accept WebSocket.", ""),
    "/api/v2/templateversions/{version}/logs?follow": ("Failed to accept websocket.", ""),
    "/api/v2/workspaces/{workspace}/watch-ws": (
        "Internal error setting up server-sent events.",
        "cannot establish connection: ",
    ),
}


def _filled(form: dict[str, str], names: dict[str, str]) -> dict[str, str]:
    return {name: value.format(**names) for name, value in form.items()}


async def _application(world: World) -> dict[str, str]:
    created = await world.post("/api/v2/oauth2-provider/apps", {"name": "a", "callback_url": CALLBACK, "icon": ""})
    app = created.json()["id"]
    secret = (await world.post(f"/api/v2/oauth2-provider/apps/{app}/secrets", {})).json()["client_secret_full"]
    return {"app": app, "secret": secret}


async def test_oauth2_refusals() -> None:
    async with running_coderd(experiments=("oauth2",)) as world:
        await world.first_user()
        names = await _application(world)
        for path, forms in (("/oauth2/tokens", TOKEN_FORMS), ("/oauth2/revoke", REVOCATION_FORMS)):
            for form, expected in forms:
                answer = await world.client.post(path, data=_filled(form, names))
                assert (answer.status_code, answer.json()) == expected, (path, form)
        for query, error, description in CONSENTS:
            parameters = {"client_id": names["app"], "redirect_uri": CALLBACK, **query}
            answer = await world.client.post(
                "/oauth2/authorize", params=parameters, headers={"Coder-Session-Token": world.token}
            )
            assert (answer.status_code, answer.json()["error"]) == (400, error), query
            assert answer.json()["error_description"] == description


UPGRADE = 'WebSocket protocol violation: Connection header "keep-alive" does not contain Upgrade'


async def test_plain_get_of_a_stream() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world, "w")
        names = {"workspace": workspace["id"], "version": workspace["latest_build"]["template_version_id"]}
        for path, (message, prefix) in STREAMS.items():
            answer = await world.get(path.format(**names))
            first, _, rest = answer.text.partition("\n")
            detail = f"{prefix}failed to accept WebSocket connection: {UPGRADE}"
            assert (answer.status_code, first) == (426, UPGRADE), path
            assert json.loads(rest) == {"message": message, "detail": detail} and rest.endswith("}\n"), path


async def test_build_of_a_deleted_workspace() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world, "w")
        await world.ctx.db.run(_delete, workspace["id"])
        for transition in ("start", "stop", "delete"):
            answer = await world.post(f"/api/v2/workspaces/{workspace['id']}/builds", {"transition": transition})
            assert (answer.status_code, answer.json()) == (409, {"message": 'Workspace "w" was deleted.'}), transition


async def _delete(tx: Tx, workspace_id: str) -> None:
    await tx.execute(text("UPDATE workspaces SET deleted = true WHERE id = :id"), {"id": UUID(workspace_id)})


async def test_inbox_stream_checks_its_query_first() -> None:
    async with running_coderd() as world:
        await world.first_user()
        answer = await world.get("/api/v2/notifications/inbox/watch", params={"read_status": "zz"})
        assert answer.status_code == 400
        answer = await world.get("/api/v2/notifications/inbox/watch", params={"targets": "zz"})
        assert answer.json()["validations"][0]["field"] == "targets"
