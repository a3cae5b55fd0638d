"""Commands on a deployment's database: administrators and encryption keys."""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from coder.coderd.store.login import user_links
from coder.coderd.store.login.user_links import LinkRow
from coder.coderd.store.notifications import web_push
from coder.coderd.store.notifications.web_push import SubscriptionRow
from coder.coderd.store.tables.people import git_ssh_keys
from coder.coderd.store.tables.site_configs import site_configs
from coder.coderd.store.tables.user_secrets import user_secrets
from coder.coderd.store.tables.web_push import webpush_subscriptions
from tests.kit.programs.command_line import run_cli
from tests.kit.server.server_in_process import World, running_coderd

OLD, NEW = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2))


async def stored(world: World) -> tuple[str, str]:
    """Return a secret's value and an SSH key as stored in the database."""

    async def read(tx: object) -> tuple[str, str]:
        value = (await tx.execute(user_secrets.select())).one().value  # type: ignore[attr-defined]
        return value, (await tx.execute(git_ssh_keys.select())).first().private_key  # type: ignore[attr-defined]

    return await world.ctx.db.read(read)


def key_id(key: str) -> str:
    return hashlib.sha256(base64.b64decode(key)).hexdigest()[:8]


async def test_rotate_keys_and_create_administrator(tmp_path: Path) -> None:
    async with running_coderd(first_user=True, external_token_encryption_keys=(OLD, NEW)) as world:
        url = world.ctx.config.postgres_url.reveal()
        env = {"CODER_PG_CONNECTION_URL": url, "CODER_EXTERNAL_TOKEN_ENCRYPTION_POSTGRES_URL": url}

        async def coder(*words: str, code: int = 0, **more: str) -> str:
            done = await run_cli(list(words), home=tmp_path, env={**env, **more})
            assert done.code == code, done.stderr
            return done.stdout if not code else done.stderr

        created = await world.post("/api/v2/users/me/secrets", {"name": "a", "value": "s3cret", "env_name": "A"})
        assert created.status_code == 201
        assert all(text.startswith(f"sealed:1:{key_id(OLD)}:") for text in await stored(world))
        keys: dict[str, Any] = {
            "CODER_EXTERNAL_TOKEN_ENCRYPTION_ENCRYPT_NEW_KEY": NEW,
            "CODER_EXTERNAL_TOKEN_ENCRYPTION_ENCRYPT_OLD_KEYS": OLD,
        }
        assert "key is not among" in await coder("server", "dbcrypt", "rotate", "-y", "--new-key", NEW, code=1)
        assert "values were encrypted" in await coder("server", "dbcrypt", "rotate", "-y", **keys)
        assert all(text.startswith(f"sealed:1:{key_id(NEW)}:") for text in await stored(world))
        assert (await world.put("/api/v2/users/me/gitsshkey")).status_code == 200
        opened = await coder(
            "server", "dbcrypt", "decrypt", "-y", CODER_EXTERNAL_TOKEN_ENCRYPTION_DECRYPT_KEYS=f"{NEW},{OLD}"
        )
        assert "values were opened" in opened
        value, private_key = await stored(world)
        assert (value, "PRIVATE KEY" in private_key) == ("s3cret", True)
        await coder("server", "dbcrypt", "rotate", "-y", **keys)
        assert "values were deleted" in await coder("server", "dbcrypt", "delete", "-y")
        assert (await world.get("/api/v2/users/me/secrets")).json() == []
        assert "not the base64 of 32 bytes" in await coder(
            "server", "dbcrypt", "rotate", "-y", "--new-key", "x", code=1
        )
        words = ("server", "create-admin-user", "--username", "root", "--email", "root@b.c")
        assert "User created successfully." in await coder(*words, CODER_PASSWORD="SomeSecure123!")
        token = await world.login("root@b.c", "SomeSecure123!")
        me = (await world.get("/api/v2/users/me", token=token)).json()
        assert ([role["name"] for role in me["roles"]], len(me["organization_ids"])) == (["owner"], 1)
        assert "already exists" in await coder(*words, code=1, CODER_PASSWORD="SomeSecure123!")
        refused = await coder(
            *words, "--postgres-connection-auth", "awsiamrds", code=1, CODER_PASSWORD="SomeSecure123!"
        )
        assert "a login by AWS IAM needs one user and one host" in refused or "does not demand TLS" in refused
        await _push_keys(world)
        assert "answer it with --yes" in await coder("server", "regenerate-vapid-keypair", code=1)
        assert (await _push_keys(world))[1] == 1, "it was not confirmed"
        assert (await coder("server", "regenerate-vapid-keypair", "-y")).startswith("1 subscriptions were deleted")
        assert await world.ctx.db.read(_read_push_keys) == (None, 0)
        await _links(world)
        links = ("server", "fix-oidc-links", "--issuer-url", "https://new.example.com")
        assert await coder(*links, "-n") == "1 accounts are linked to another issuer.\n"
        assert "1 accounts were unlinked" in await coder(*links, "-y")
        assert "0 accounts" in await coder(*links)
        assert "the issuer is required" in await coder("server", "fix-oidc-links", code=1)
        assert "1 accounts were unlinked" in await coder("server", "fix-oidc-links", "--force-reset-all", "-y")


async def _read_push_keys(tx: Any) -> tuple[str | None, int]:
    """Return the site's key pair, and the number of browser subscriptions for it."""
    key = (await tx.execute(site_configs.select().where(site_configs.c.key == web_push.VAPID_KEYS))).one_or_none()
    return key and key.value, len((await tx.execute(webpush_subscriptions.select())).all())


async def _push_keys(world: World) -> tuple[str | None, int]:
    """Insert a key pair and a subscription."""

    async def write(tx: Any) -> tuple[str | None, int]:
        if (await _read_push_keys(tx))[0] is None:
            await tx.execute(site_configs.insert().values(key=web_push.VAPID_KEYS, value="pair"))
        row = SubscriptionRow(UUID(int=1), UUID(world.user_id), datetime.now(UTC), "https://push.example", "p", "a")
        await web_push.put_subscription(tx, row, 5)
        return await _read_push_keys(tx)

    return await world.ctx.db.run(write)


async def _links(world: World) -> None:
    """Insert two accounts of OpenID providers, one of them a former provider."""

    async def write(tx: object) -> None:
        for owner, issuer in ((world.user_id, "https://old.example.com"), (user_id, "https://new.example.com")):
            await user_links.put_link(tx, LinkRow(UUID(owner), "oidc", f"{issuer}||1", "", "", None, {}))  # type: ignore[arg-type]

    user_id, _ = await world.member()
    await world.ctx.db.run(write)
