"""Commands about secrets, proxies, providers and the deployment, against a running server."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from coder.api.site.deployment import License
from coder.base.json_types import JsonObject
from coder.cli.server.deployment import _license_row
from tests.kit.programs.command_line import run_cli
from tests.kit.server.server_in_process import running_coderd


async def test_commands_of_the_deployment(tmp_path: Path) -> None:
    async with running_coderd(first_user=True) as world:
        env = {"CODER_URL": world.url, "CODER_SESSION_TOKEN": world.token}

        async def coder(*words: str, stdin: str = "", code: int = 0) -> str:
            done = await run_cli(list(words), home=tmp_path, env=env, stdin=stdin)
            assert done.code == code, done.stderr
            return done.stdout if not code else done.stderr

        # secrets
        await coder("secret", "create", "npm", "--env", "NPM_TOKEN", "--description", "registry", stdin="s3cret\n")
        rows = (await coder("secrets", "list")).splitlines()
        assert rows[0].split() == ["NAME", "CREATED", "UPDATED", "ENV", "FILE", "ENABLED", "DESCRIPTION"]
        assert rows[1].startswith("npm")
        assert "s3cret" not in rows[1]
        await coder("secret", "update", "npm", "--file", "~/.npm", "--enabled=false")
        output = json.loads(await coder("secret", "ls", "npm", "-o", "json"))[0]
        assert (output["file_path"], output["env_name"], output["enabled"]) == ("~/.npm", "NPM_TOKEN", False)
        (tmp_path / "more.env").write_text("A_KEY=1\nB_KEY='2'\n")
        assert await coder("secret", "import", "more.env") == "Imported 2 secrets.\n"
        assert "--input-format" in await coder("secret", "import", "--help")
        assert "format of standard input is unknown" in await coder("secret", "import", "-", stdin="{}", code=1)
        await coder("secret", "import", "-", "--input-format", "json", stdin='{"C_KEY": "3"}')
        assert "canceled" in await coder("secret", "delete", "npm", stdin="no\n", code=1)
        await coder("secret", "rm", "npm", "-y")
        assert {load["name"] for load in json.loads(await coder("secret", "list", "-o", "json"))} == {
            "A_KEY",
            "B_KEY",
            "C_KEY",
        }
        assert "no changes were requested" in await coder("secret", "update", "A_KEY", code=1)
        # proxies
        token = (await coder("wsproxy", "create", "--name", "berlin", "--only-token")).strip()
        assert ":" in token
        assert (await coder("workspace-proxy", "ls", "-c", "name")).split() == ["NAME", "primary", "berlin"]
        await coder("workspace-proxy", "edit", "berlin", "--display-name", "Berlin")
        again = json.loads(await coder("workspace-proxy", "regenerate-token", "berlin", "-o", "json"))
        assert again["proxy_token"] not in {"", token}
        await coder("workspace-proxy", "delete", "berlin", "-y")
        # the rest
        assert "CODER_AGENT_URL must be set" in await coder("external-auth", "access-token", "github", code=1)
        assert (await world.get("/api/v2/prebuilds/settings")).json() == {"reconciliation_paused": False}
        await coder("prebuilds", "pause")
        assert (await world.get("/api/v2/prebuilds/settings")).json() == {"reconciliation_paused": True}
        await coder("licenses", "add", "-f", "some.jwt")
        claims = await run_cli(["users", "oidc-claims", "-o", "json"], home=tmp_path, env=env)
        assert claims.code == 1, "the first user signed in with a password"
        assert "get oidc claims" in claims.stderr
        await coder("organizations", "settings", "set", "role-sync", stdin='{"field": "roles", "mapping": {"a": []}}')
        assert json.loads(await coder("org", "settings", "show", "role-sync"))["field"] == "roles"
        assert "sharing_disabled" in await coder("organizations", "settings", "show", "workspace-sharing")
        assert "is not JSON" in await coder("org", "settings", "set", "organization-sync", stdin="no", code=1)


def test_license_of_upstream_server() -> None:
    claims: JsonObject = {"features": {"scim": 1, "audit_log": 1}, "license_expires": 1_800_000_000, "trial": True}
    at = datetime(2026, 1, 2, tzinfo=UTC)
    row = _license_row(License(id=1, uuid=UUID(int=1), uploaded_at=at, claims=claims))
    assert row["features"] == "audit_log, scim"
    assert (row["expires at"], row["trial"]) == ("2027-01-15T08:00:00Z", True)
    odd_claims: list[JsonObject] = [{}, {"license_expires": 10**30}, {"license_expires": "soon"}]
    for odd in odd_claims:
        assert _license_row(License(id=1, uuid=UUID(int=1), uploaded_at=at, claims=odd))["expires at"] == ""
