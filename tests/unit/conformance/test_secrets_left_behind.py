"""Secrets that a deployment stores: none in its logs, its audit log, or tables that only compare.

Every kind of secret is created, and sent in every accepted way (header, query, cookie, body) and in the wrong place;
then everything written is searched for them.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from urllib.parse import quote

from sqlalchemy import text

from coder.base import log
from coder.net.masking import SECRET_PATHS
from tests.kit.server.server_in_process import FIRST_USER, World, running_coderd
from tests.kit.server.two_organizations import foreign_world
from tests.unit.coderd.services.login.test_oauth2_provider import CALLBACK, VERIFIER, Client

PASSWORD = "Correct-Horse-Battery-1"
KEPT = {"user_secrets", "workspace_agents", "workspace_builds", "provisioner_jobs", "template_version_variables"}
"""Tables with secrets that are used and not only compared; values of users are encrypted if a key is configured."""
_TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"


@contextlib.contextmanager
def everything_logged() -> Iterator[list[str]]:
    """Record the output of all sinks at the lowest level."""
    lines: list[str] = []

    def keep(level: str, at: datetime, name: str, event: str, fields: dict[str, Any]) -> None:
        lines.append(f"{level} {name} {event} {fields}")

    threshold, sinks = log._State.threshold, list(log._State.sinks)
    log._State.threshold, log._State.sinks[:] = 0, [keep]
    try:
        yield lines
    finally:
        log._State.threshold, log._State.sinks[:] = threshold, sinks


async def _create_secrets(world: World, token: str, organization: str) -> dict[str, str]:
    """Create secrets, by kind."""

    async def post(path: str, body: Any = None, by: str = token) -> Any:
        response = await world.post(path, body, token=by)
        assert response.status_code < 300, (path, response.text)
        return response.json()

    path = f"/api/v2/organizations/{organization}/provisionerkeys"
    app = await post("/api/v2/oauth2-provider/apps", {"name": "app", "callback_url": CALLBACK}, world.token)
    secret = (await post(f"/api/v2/oauth2-provider/apps/{app['id']}/secrets", None, world.token))["client_secret_full"]
    client = Client(world, app["id"], secret, token)
    code = await client.code()
    given: Any = (await client.exchange(code)).json()
    await client.exchange(await client.code(), code_verifier="w" * 60)
    proxy = await post("/api/v2/workspaceproxies", {"name": "away", "display_name": "", "icon": ""}, world.token)
    await world.put("/api/v2/oauth2-provider/settings", {"dynamic_client_registration_enabled": True})
    registered = await post("/oauth2/register", {"redirect_uris": [CALLBACK]}, "")
    await post("/api/v2/users/me/secrets", {"name": "s", "value": "value-of-a-secret-9", "env_name": "S"})
    return {
        "session": token,
        "token": (await post("/api/v2/users/me/keys/tokens", {"token_name": "t"}))["key"],
        "provisioner key": (await post(path, {"name": "k"}))["key"],
        "proxy token": proxy["proxy_token"],
        "client secret": secret,
        "code": code,
        "verifier": VERIFIER,
        "access token": given["access_token"],
        "refresh token": given["refresh_token"],
        "registration token": registered["registration_access_token"],
        "registered secret": registered["client_secret"],
        "a user's secret": "value-of-a-secret-9",
        "password": PASSWORD,
        "first password": FIRST_USER["password"],
    }


async def _send_everywhere(world: World, secrets: dict[str, str]) -> None:
    """Send each secret where it belongs and where it does not."""
    for kind, secret in secrets.items():
        basic = base64.b64encode(f"x:{secret}".encode()).decode()
        for headers in (
            {"Coder-Session-Token": secret},
            {"Authorization": f"Bearer {secret}"},
            {"Authorization": f"Basic {basic}"},
            {"Cookie": f"coder_session_token={secret}"},
            {"Coder-Provisioner-Daemon-Key": secret},
            {"Coder-External-Proxy-Token": secret},
            {"X-CSRF-TOKEN": secret},
            {"User-Agent": "plain"},
        ):
            await world.client.get("/api/v2/users/me", headers=headers)
            await world.client.post("/api/v2/users/me/keys", headers=headers)
            world.client.cookies.clear()
        for path in (
            f"/api/v2/users/me?coder_session_token={quote(secret)}",
            f"/api/v2/users/me?access_token={quote(secret)}",
            f"/api/v2/workspaceagents/me/gitsshkey?coder_session_token={quote(secret)}",
            f"/api/v2/users/oidc/callback?code={quote(secret)}&state={quote(secret)}",
            f"/external-auth/x/callback?code={quote(secret)}&state={quote(secret)}",
            *(f"{path}{quote(secret)}{more}" for path in SECRET_PATHS for more in ("", "/", "/more", "?a=1")),
            f"/api//v2//provisionerkeys/{quote(secret)}",
            f"/api/v2/provisioner%6Beys/{quote(secret)}",
            f"/@victim/box/apps/web/?coder_signed_app_token_23db1dde={quote(secret)}",
        ):
            await world.client.get(path)
        for path in SECRET_PATHS:
            await world.client.put(f"{path}{quote(secret)}")  # no route with that method
        for path, body in (
            ("/api/v2/users/login", {"email": "unknown@b.c", "password": secret}),
            ("/api/v2/users/otp/change-password", {"email": "a@b.c", "one_time_passcode": secret, "password": secret}),
            ("/api/v2/users/validate-password", {"password": secret}),
            ("/api/v2/users/login", {"email": 5, "password": secret}),
        ):
            await world.post(path, body, token="")
        form = {"grant_type": "refresh_token", "refresh_token": secret, "client_id": secret, "client_secret": secret}
        await world.request("POST", "/oauth2/tokens", data=form, token="")
        await world.request("POST", "/oauth2/revoke", data={"token": secret, "client_id": kind}, token="")
        await world.request("POST", "/api/v2/users/login", content=f'{{"password": "{secret}"', token="")


async def test_no_secret_is_left_behind() -> None:
    wrong = []
    with everything_logged() as lines:
        async with running_coderd() as empty:
            await empty.first_user()  # the others need a first user
        async with foreign_world(experiments=("oauth2",)) as scene:
            world = scene.world
            secrets = await _create_secrets(world, scene.token, scene.mine["organization"])
            await world.put("/api/v2/users/victim/password", {"password": PASSWORD})
            await _send_everywhere(world, secrets)
            agents = {"agent token": scene.agent_token}
            audit = (await world.get("/api/v2/audit?limit=0&q=")).text
            assert "diff" in audit and len(lines) > 100
            logged = "\n".join(lines)
            for kind, secret in {**secrets, **agents}.items():
                for place, written in (("log", logged), ("audit log", audit)):
                    if secret in written or quote(secret) in written:
                        line = next((item for item in written.splitlines() if secret in item), "")
                        wrong.append(f"{kind} in the {place}: {line[:300]}")
            wrong += await _in_tables(world, secrets)
    assert not wrong, "\n".join(wrong)


async def _in_tables(world: World, secrets: dict[str, str]) -> list[str]:
    async def search(tx: Any) -> list[str]:
        wrong = []
        for (table,) in (await tx.execute(text(_TABLES))).all():
            rows = (await tx.execute(text(f'SELECT t::text FROM "{table}" t'))).scalars().all()  # noqa: S608 - of ours
            wrong += [
                f"{kind} in the table {table}"
                for kind, secret in secrets.items()
                if table not in KEPT and any(secret in row or secret.encode().hex() in row for row in rows)
            ]
        return wrong

    return await world.ctx.db.read(search)


async def test_changes_of_secrets_are_audited() -> None:
    """Secrets, skills and the provider's settings: with the user and the name, never the value."""
    skill = "---\nname: tidy\ndescription: {}\n---\nText.\n"
    async with running_coderd(first_user=True, experiments=("oauth2",)) as world:
        secrets, skills = "/api/v2/users/me/secrets", "/api/experimental/users/me/skills"
        settings = "/api/v2/oauth2-provider/settings"
        for method, path, body, kind, action, changed in (
            (
                "POST",
                secrets,
                {"name": "db", "value": "first-value", "env_name": "DB"},
                "user_secret",
                "create",
                "value",
            ),
            ("PATCH", f"{secrets}/db", {"value": "second-value"}, "user_secret", "write", "value"),
            ("DELETE", f"{secrets}/db", None, "user_secret", "delete", "value"),
            ("POST", skills, {"content": skill.format("a")}, "user_skill", "create", "description"),
            ("PATCH", f"{skills}/tidy", {"content": skill.format("b")}, "user_skill", "write", "description"),
            ("DELETE", f"{skills}/tidy", None, "user_skill", "delete", "description"),
            (
                "PUT",
                settings,
                {"dynamic_client_registration_enabled": True},
                "oauth2_provider_settings",
                "write",
                "dynamic_client_registration_enabled",
            ),
        ):
            response = await world.request(method, path, json=body)
            assert response.status_code < 300, response.text
            (row,) = (await world.get(f"/api/v2/audit?limit=1&q=resource_type:{kind}")).json()["audit_logs"]
            assert (row["action"], row["user"]["username"]) == (action, "admin")
            assert changed in row["diff"], row
            assert "first-value" not in str(row) and "second-value" not in str(row)
        assert (await world.patch(f"{secrets}/nothing", {"value": "third-value"})).status_code == 404
        batch = {"format": "env", "content": "A=fourth-value"}
        assert (await world.post(f"{secrets}/batch", batch)).status_code == 201
        rows = (await world.get("/api/v2/audit?limit=25&q=resource_type:user_secret")).text
        assert "third-value" not in rows and "fourth-value" not in rows
        assert rows.count('"action":"create"') == 2
