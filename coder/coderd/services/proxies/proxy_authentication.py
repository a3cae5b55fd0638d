"""Authentication of workspace proxies: a proxy's token is `<its id>:<secret>`."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Unauthenticated
from coder.api.proxies.proxy_token import TOKEN_MISSING, TOKEN_REFUSED
from coder.coderd.services.access.authentication import hash_secret
from coder.coderd.store.proxies import system_workspace_proxies
from coder.coderd.store.proxies.workspace_proxies import ProxyRow

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


@dataclass(frozen=True, slots=True)
class ProxyCaller:
    row: ProxyRow


async def authenticate_proxy(ctx: Context, token: str) -> ProxyCaller:
    """Return the proxy that a token belongs to. Raises Unauthenticated."""
    if not token:
        raise Unauthenticated(TOKEN_MISSING)
    identity, _, secret = token.partition(":")
    try:
        proxy_id = UUID(identity)
    except ValueError:
        raise Unauthenticated(TOKEN_REFUSED, "It is written ID:SECRET.") from None
    row = await ctx.db.read(system_workspace_proxies.find_proxy, str(proxy_id))
    stored = row.hashed_secret if row else b""
    if not hmac.compare_digest(stored, hash_secret(secret)) or row is None:
        raise Unauthenticated(TOKEN_REFUSED, "There is no such proxy, or its token was replaced.")
    return ProxyCaller(row)
