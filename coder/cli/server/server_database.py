"""`coder server dbcrypt …`, `fix-oidc-links` and `regenerate-vapid-keypair`: changes of a deployment's database."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from coder.base.errors import CoderError
from coder.base.threads import run_trio
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.server.direct_database import DatabaseOptions
from coder.cli.declarations.server.server_database import (
    DECRYPT,
    FIX_LINKS,
    FORGET,
    NEW_PUSH_KEYS,
    ROTATE,
    ServerDbcryptDecryptOptions,
    ServerDbcryptDeleteOptions,
    ServerDbcryptRotateOptions,
    ServerFixOidcLinksOptions,
    ServerRegenerateVapidKeypairOptions,
)
from coder.cli.server.direct_database import on_database, open_direct
from coder.cli.ui.output import confirm
from coder.coderd.services.foundation.encryption_at_rest import SEALED, Sealer, read_keys
from coder.coderd.store.engine import encryption_at_rest
from coder.coderd.store.login import user_links
from coder.coderd.store.notifications import web_push

if TYPE_CHECKING:
    from coder.coderd.services.foundation.encryption_at_rest import Sealer


# ---- encryption keys


def _keys(texts: list[str] | tuple[str, ...], flag: str) -> dict[str, bytes]:
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
    sealer: Sealer = Sealer.of_keys(keys)
    return _rewrite(invocation, lambda text: sealer.open(text).reveal(), "opened")


def _rewrite(invocation: Invocation[DatabaseOptions], transform: Callable[[str], str], verb: str) -> int:
    """Rewrite all values in one transaction: a value that cannot be decrypted rolls everything back."""

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
    confirm(
        invocation.options.yes,
        "Delete all encrypted values: tokens of providers, secrets and SSH keys of users? This cannot be undone.",
    )

    async def work() -> int:
        async with open_direct(invocation) as database:
            return await database.run(encryption_at_rest.forget_sealed)

    sys.stdout.write(f"{run_trio(work)} values were deleted.\n")
    return 0


# ---- links to users of the OpenID provider


@implements(FIX_LINKS)
@on_database
def _fix_links(invocation: Invocation[ServerFixOidcLinksOptions]) -> int:
    """Unlink accounts after a change of the provider: each is linked again at its next login."""
    everything, issuer = invocation.options.force_reset_all, invocation.options.issuer_url
    if not everything and not issuer:
        raise CoderError(
            "bad_option", "the issuer is required", "Set --issuer-url, or --force-reset-all for all links."
        )
    prefix = "" if everything else f"{issuer}||"

    async def work(*, write: bool) -> int:
        async with open_direct(invocation, while_running=True) as database:
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
    confirm(
        invocation.options.yes,
        "Generate new keys for browser notifications? Every browser has to subscribe again.",
    )

    async def work() -> int:
        async with open_direct(invocation, while_running=True) as database:
            return await database.run(web_push.forget_keys)

    count = run_trio(work)
    sys.stdout.write(f"{count} subscriptions were deleted; the server generates new keys on the next use.\n")
    return 0
