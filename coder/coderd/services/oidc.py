"""An OpenID Connect provider: where its endpoints are, whose keys it signs with, what it says of a person.

OpenID Connect Core 1.0 and Discovery 1.0. Documents are fetched on first use and kept for an hour; an id token with
an unknown key makes the keys be read again (at most once a minute).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import trio

from coder.base.errors import CoderError
from coder.coderd.config import struct_value
from coder.coderd.services.errors import BadGateway, Unauthenticated
from coder.coderd.services.oauth_exchange import Endpoint, Granted
from coder.coderd.services.outgoing import fetch

if TYPE_CHECKING:
    from coder.coderd.services.context import Context

CALLBACK = "/api/v2/users/oidc/callback"
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
_KEEP = timedelta(hours=1)
_AGAIN = timedelta(minutes=1)
_LEEWAY = 30
"Seconds another machine's clock may differ."


@dataclass(frozen=True, slots=True)
class Told:
    """What the provider said, by source."""

    id_token: dict[str, Any]
    user_info: dict[str, Any]

    @property
    def merged(self) -> dict[str, Any]:
        return {**self.id_token, **self.user_info}


def enabled(ctx: Context) -> bool:
    return bool(ctx.config.oidc_client_id and ctx.config.oidc_issuer_url)


class OidcProvider:
    """The site's provider, see `Context.part`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._lock = trio.Lock()
        self._found: dict[str, Any] = {}
        self._found_at: datetime | None = None
        self._keys: Any = None
        self._keys_at: datetime | None = None

    async def endpoint(self) -> Endpoint:
        """Raises BadGateway when the provider cannot be reached."""
        config = self._ctx.config
        found = await self._discover()
        params = struct_value(config.oidc_auth_url_params) or {}
        return Endpoint(
            client_id=config.oidc_client_id,
            client_secret=config.oidc_client_secret,
            auth_url=str(found.get("authorization_endpoint", "")),
            token_url=str(found.get("token_endpoint", "")),
            scopes=config.oidc_scopes,
            redirect_url=config.oidc_redirect_url or self._ctx.access_url + CALLBACK,
            extra={str(name): str(value) for name, value in params.items()},
            pkce="S256" in (found.get("code_challenge_methods_supported") or ()),
        )

    async def told(self, granted: Granted) -> Told:
        """The verified id token's claims and the user info. Raises Unauthenticated, BadGateway."""
        token = granted.document.get("id_token")
        if not isinstance(token, str):
            raise Unauthenticated("No id_token found in response payload. Does your OIDC provider support it?")
        claims = await self._verify(token)
        info: dict[str, Any] = {}
        url = (await self._discover()).get("userinfo_endpoint")
        if url and not self._ctx.config.oidc_ignore_userinfo:
            info = await self._document(str(url), granted)
            if info.get("sub", claims.get("sub")) != claims.get("sub"):
                raise Unauthenticated("The user info is about somebody else than the id token.")
        return Told(claims, info)

    async def _verify(self, token: str) -> dict[str, Any]:
        import jwt

        config = self._ctx.config
        try:
            key = await self._key(str(jwt.get_unverified_header(token).get("kid", "")))
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=_ALGORITHMS,
                audience=config.oidc_client_id,
                issuer=None if config.dangerous_oidc_skip_issuer_checks else config.oidc_issuer_url,
                leeway=_LEEWAY,
                options={"require": ["exp", "sub"], "verify_iat": False},
            )
        except jwt.PyJWTError as error:
            raise Unauthenticated("Failed to verify OIDC token.", str(error)) from error
        return claims

    async def _key(self, kid: str) -> Any:
        import jwt

        for again in (False, True):
            keys = await self._key_set(again)
            usable = [key for key in keys.keys if not kid or key.key_id == kid]
            if usable:
                return usable[0]
        raise jwt.InvalidKeyError(f"the provider has no key {kid!r}")

    async def _key_set(self, again: bool) -> Any:
        import jwt

        url = str((await self._discover()).get("jwks_uri", ""))
        async with self._lock:
            now = self._ctx.clock.now()
            age = _AGAIN if again else _KEEP
            if self._keys is None or self._keys_at is None or now - self._keys_at > age:
                self._keys = jwt.PyJWKSet.from_dict(await self._document(url))
                self._keys_at = now
            return self._keys

    async def _discover(self) -> dict[str, Any]:
        async with self._lock:
            now = self._ctx.clock.now()
            if self._found_at is None or now - self._found_at > _KEEP:
                issuer = self._ctx.config.oidc_issuer_url
                found = await self._document(issuer.rstrip("/") + "/.well-known/openid-configuration")
                claimed = found.get("issuer")
                if claimed != issuer and not self._ctx.config.dangerous_oidc_skip_issuer_checks:
                    raise BadGateway(
                        "The OIDC provider is not set up correctly.",
                        f"it calls itself {claimed!r}, --oidc-issuer-url says {issuer!r}",
                    )
                self._found, self._found_at = found, now
            return self._found

    async def _document(self, url: str, granted: Granted | None = None) -> dict[str, Any]:
        try:
            answer = await fetch("GET", url, bearer=granted.access if granted else None)
            if not answer.fine:
                raise BadGateway("The OIDC provider refused a request.", f"{url}: status {answer.status}")
            found = json.loads(answer.body)
            if not isinstance(found, dict):
                raise ValueError("not an object")
        except (CoderError, ValueError, RecursionError) as error:
            if isinstance(error, BadGateway):
                raise
            raise BadGateway("The OIDC provider cannot be reached.", f"{url}: {error}") from error
        return found
