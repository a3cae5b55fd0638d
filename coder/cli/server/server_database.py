"""`coder server postgres-builtin-…`, `create-admin-user` and `dbcrypt …`: commands on a deployment's database."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from coder.base.errors import CoderError
from coder.base.secret import Secret
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.server.direct_database import DatabaseOptions
from coder.cli.declarations.server.server_database import (
    BUILTIN_SERVE,
    BUILTIN_URL,
    CREATE_ADMIN,
    DECRYPT,
    FIX_LINKS,
    FORGET,
    NEW_PUSH_KEYS,
    ROTATE,
    RawOption,
    ServerCreateAdminUserOptions,
    ServerDbcryptDecryptOptions,
    ServerDbcryptDeleteOptions,
    ServerDbcryptRotateOptions,
    ServerFixOidcLinksOptions,
    ServerRegenerateVapidKeypairOptions,
)
from coder.cli.server.direct_database import find_database, on_database, open_direct, settings
from coder.cli.ui.output import ask, confirm

if TYPE_CHECKING:
    from coder.coderd.services.foundation.encryption_at_rest import Sealer


# ---- the built-in database


def _print_url(invocation: Invocation[RawOption], url: str) -> None:
    sys.stdout.write(f"{url}\n" if invocation.options.raw_url else f'psql "{url}"\n')
    sys.stdout.flush()


@implements(BUILTIN_URL)
@on_database
def _builtin_url(invocation: Invocation[RawOption]) -> int:
    from coder.coderd.store.engine.postgres import builtin_url

    _print_url(invocation, builtin_url(settings(invocation).data_path))
    return 0


@implements(BUILTIN_SERVE)
@on_database
def _builtin_serve(invocation: Invocation[RawOption]) -> int:
    """Run until a stop signal."""
    import signal

    import trio

    from coder.base.threads import run_trio
    from coder.coderd.store.engine.postgres import run_postgres

    config = find_database(invocation)

    async def serve() -> None:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with run_postgres(config.data_path, bin_dir=config.postgres_bin_dir) as url:
                _print_url(invocation, url)
                await signals.__anext__()

    run_trio(serve)
    return 0


# ---- an administrator


@implements(CREATE_ADMIN)
@on_database
def _create_admin(invocation: Invocation[ServerCreateAdminUserOptions]) -> int:
    from coder.base.threads import run_trio

    username = invocation.options.username or ask("Username:")
    email = invocation.options.email or ask("Email:")
    password = invocation.options.password
    if not password:
        password = ask("Password:", secret=True)
        if ask("Confirm password:", secret=True) != password:
            raise CoderError("password", "Passwords do not match", "Nothing was changed.")
    user_id = run_trio(_insert_admin, invocation, username, email, Secret(password))
    sys.stdout.write("\nUser created successfully.\n")
    for label, value in (("ID", user_id), ("Username", username), ("Email", email)):
        sys.stdout.write(f"{label + ':':10}{value}\n")
    return 0


async def _insert_admin(
    invocation: Invocation[ServerCreateAdminUserOptions], username: str, email: str, password: Secret
) -> str:
    from dataclasses import replace

    import trio

    from coder.base.clock import SystemClock
    from coder.coderd.app import new_context
    from coder.coderd.services.access.passwords import check_strength
    from coder.coderd.services.people import new_users
    from coder.coderd.store.people import organizations as organization_store

    new_users.check_names(username, "", email)
    check_strength(password.reveal())
    config = replace(settings(invocation), ssh_keygen_algorithm=invocation.options.ssh_keygen_algorithm)
    async with open_direct(invocation) as database, trio.open_nursery() as nursery:
        ctx = await new_context(config, database, nursery, SystemClock(), "http://localhost")
        organizations = await database.read(organization_store.list_organizations)
        new_user = new_users.NewUser(
            email=email,
            username=username,
            name="",
            password=password.reveal(),
            status="active",
            organization_ids=[organization.id for organization in organizations],
            roles=["owner"],
        )
        row = await new_users.insert_user(ctx, new_user)
        nursery.cancel_scope.cancel()
        return str(row.id)


# ---- encryption keys


def _keys(texts: list[str] | tuple[str, ...], flag: str) -> dict[str, bytes]:
    from coder.coderd.services.foundation.encryption_at_rest import read_keys

    return read_keys([text.strip() for text in texts if text.strip()], flag)


@implements(ROTATE)
@on_database
def _rotate(invocation: Invocation[ServerDbcryptRotateOptions]) -> int:
    """Encrypt all values with the new key, including unencrypted ones; the new key replaces the old keys."""
    new = _keys([invocation.options.new_key], "--new-key")
    old = _keys(invocation.options.old_keys, "--old-keys")
    if not new:
        raise CoderError(
            "bad_option", "a new key is required", "Generate one for --new-key with `openssl rand -base64 32`."
        )
    confirm(
        invocation.options.yes,
        "Encrypt all secrets of the database with the new key? Back up the database and stop the server first.",
    )
    from coder.coderd.services.foundation.encryption_at_rest import Sealer

    reader, writer = Sealer.of_keys({**new, **old}), Sealer.of_keys(new)
    newest = f"sealed:1:{next(iter(new))}:"

    def seal(text: str) -> str:
        return text if text.startswith(newest) else writer.seal(reader.open(text))

    return _rewrite(invocation, seal, "encrypted with the new key")


@implements(DECRYPT)
@on_database
def _decrypt(invocation: Invocation[ServerDbcryptDecryptOptions]) -> int:
    keys = _keys(invocation.options.keys, "--keys")
    if not keys:
        raise CoderError("bad_option", "the keys are required", "Use the keys of --external-token-encryption-keys.")
    confirm(invocation.options.yes, "Decrypt all encrypted values? Back up the database and stop the server first.")
    from coder.coderd.services.foundation.encryption_at_rest import Sealer

    sealer: Sealer = Sealer.of_keys(keys)
    return _rewrite(invocation, lambda text: sealer.open(text).reveal(), "opened")


def _rewrite(invocation: Invocation[DatabaseOptions], transform: Callable[[str], str], verb: str) -> int:
    """Rewrite all values in one transaction: a value that cannot be decrypted rolls everything back."""
    from coder.base.threads import run_trio
    from coder.coderd.services.foundation.encryption_at_rest import SEALED
    from coder.coderd.store.engine import encryption_at_rest

    def inside(text: str) -> str:
        return SEALED.sub(lambda match: transform(match[0]), text)

    async def work() -> int:
        async with open_direct(invocation) as database:
            return await database.run(encryption_at_rest.rewrite, transform, inside)

    sys.stdout.write(f"{run_trio(work)} values were {verb}.\n")
    return 0


@implements(FORGET)
@on_database
def _forget(invocation: Invocation[ServerDbcryptDeleteOptions]) -> int:
    from coder.base.threads import run_trio
    from coder.coderd.store.engine import encryption_at_rest

    confirm(
        invocation.options.yes,
        "Delete all encrypted values: tokens of providers, secrets and SSH keys of users? This cannot be undone.",
    )

    async def work() -> Any:
        async with open_direct(invocation) as database:
            return await database.run(encryption_at_rest.forget_sealed)

    sys.stdout.write(f"{run_trio(work)} values were deleted.\n")
    return 0


# ---- links to users of the OpenID provider


@implements(FIX_LINKS)
@on_database
def _fix_links(invocation: Invocation[ServerFixOidcLinksOptions]) -> int:
    """Unlink accounts after a change of the provider: each is linked again at its next login."""
    from coder.base.threads import run_trio
    from coder.coderd.store.login import user_links

    everything, issuer = invocation.options.force_reset_all, invocation.options.issuer_url
    if not everything and not issuer:
        raise CoderError(
            "bad_option", "the issuer is required", "Set --issuer-url, or --force-reset-all for all links."
        )
    prefix = "" if everything else f"{issuer}||"

    async def work(*, write: bool) -> int:
        async with open_direct(invocation) as database:
            return await database.run(partial(user_links.reset_links, write=write), "oidc", prefix)

    count = run_trio(partial(work, write=False))
    sys.stdout.write(f"{count} accounts are linked to {'any' if everything else 'another'} issuer.\n")
    if invocation.options.dry_run or not count:
        return 0
    confirm(
        invocation.options.yes, "Unlink them? Each is linked again when its owner logs in with the same e-mail address."
    )
    sys.stdout.write(f"{run_trio(partial(work, write=True))} accounts were unlinked.\n")
    return 0


# ---- keys of browser notifications


@implements(NEW_PUSH_KEYS)
@on_database
def _new_push_keys(invocation: Invocation[ServerRegenerateVapidKeypairOptions]) -> int:
    from coder.base.threads import run_trio
    from coder.coderd.store.notifications import web_push

    confirm(
        invocation.options.yes,
        "Generate new keys for browser notifications? Every browser has to subscribe again.",
    )

    async def work() -> int:
        async with open_direct(invocation) as database:
            return await database.run(web_push.forget_keys)

    count = run_trio(work)
    sys.stdout.write(f"{count} subscriptions were deleted; the server generates new keys on the next use.\n")
    return 0
