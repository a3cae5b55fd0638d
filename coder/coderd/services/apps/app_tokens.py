"""Tokens for applications, issued and read with this server's keys. Their format is in
`appproxy/apps/app_tickets.py`."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from coder.appproxy.apps import app_tickets
from coder.appproxy.apps.app_tickets import KEY_FEATURE, TICKET_FEATURE, Ticket, ticket_claims
from coder.domain.foundation.signed_tokens import sign

if TYPE_CHECKING:
    from collections.abc import Iterable

    from coder.coderd.services.foundation.context import Context
    from coder.domain.apps.app_addresses import AppRequest

TICKET_LIFETIME = timedelta(minutes=1)
SEALED_LIFETIME = timedelta(minutes=1)
"""Lifetime of a sealed key: it only has to survive one redirect."""
_NONCE = 12


async def issue_ticket(ctx: Context, ticket: Ticket) -> tuple[str, datetime]:
    """Return the ticket's token and its expiry."""
    key = await ctx.services.signing_keys.get(TICKET_FEATURE)
    expires_at = ctx.clock.now() + TICKET_LIFETIME
    return sign(key, ticket_claims(ticket, expires_at)), expires_at


async def find_ticket_untrusted(ctx: Context, tokens: Iterable[str], request: AppRequest) -> Ticket | None:
    """Return the first valid ticket for exactly this application among the client's tokens."""
    return await app_tickets.find_ticket_untrusted(ctx.services.signing_keys, ctx.clock.now(), tokens, request)


async def read_ticket_untrusted(ctx: Context, token: str) -> Ticket:
    """Return the ticket in a token. Raises TokenRefused."""
    return (await app_tickets.read_ticket_untrusted(ctx.services.signing_keys, ctx.clock.now(), token))[0]


async def seal_key(ctx: Context, api_key: str, algorithm: str = app_tickets.DIRECT) -> str:
    """Seal an API key for the query of a redirect to an application's host, with the algorithm that its host reads."""
    key = await ctx.services.signing_keys.get(KEY_FEATURE)
    claims = app_tickets.sealed_claims(api_key, ctx.clock.now(), SEALED_LIFETIME)
    if algorithm == app_tickets.WRAPPED:
        return app_tickets.seal_wrapped(key, claims, secrets.token_bytes)
    return app_tickets.seal(key, claims, secrets.token_bytes(_NONCE))


async def open_key_untrusted(ctx: Context, sealed: str) -> str:
    """Return the sealed API key. Raises TokenRefused."""
    return await app_tickets.open_key_untrusted(ctx.services.signing_keys, ctx.clock.now(), sealed)
