"""OpenID Connect provider: its endpoints, its signing keys and its claims about a user.

OpenID Connect Core 1.0 and Discovery 1.0. Documents are fetched on first use and cached for an hour. An id token with
an unknown key causes the keys to be fetched again, at most once a minute.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import trio

from coder.api.base.refusals import BadGateway, Unauthenticated
from coder.base.errors import CoderError
from coder.base.json_types import Json, JsonObject, as_object
from coder.base.log import get_logger
from coder.base.quoted import cut
from coder.coderd.config.settings import struct_value
from coder.coderd.services.foundation.outgoing_requests import fetch, split_url
from coder.coderd.services.login.client_assertion import load_certificate
from coder.coderd.services.login.oauth_exchange import ProviderEndpoint, TokenGrant
from coder.net.masking import masked

if TYPE_CHECKING:
    from jwt import PyJWK, PyJWKSet

    from coder.coderd.services.foundation.context import Context

_log = get_logger("oidc")

CALLBACK = "/api/v2/users/oidc/callback"
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
_KEY_LIFETIME = timedelta(hours=1)
_KEY_RETRY_INTERVAL = timedelta(minutes=1)
_MISCONFIGURED = "The OIDC provider is not set up correctly."
_MAX_TEXT = 1000
"Characters of a provider's text (ours) that are shown."
_LEEWAY = 30
"Seconds by which another machine's clock may differ."


@dataclass(frozen=True, slots=True)
class OidcClaims:
    """Claims of the provider by source."""

    id_token: JsonObject
    user_info: JsonObject

    @property
    def merged(self) -> JsonObject:
        return {**self.id_token, **self.user_info}


def nonce_of(state: str) -> str:
    """Return the nonce for the id token, derived from the state, which only this browser knows."""
    return hashlib.sha256(f"nonce of {state}".encode()).hexdigest()


_DIGESTS = {"256": hashlib.sha256, "384": hashlib.sha384, "512": hashlib.sha512}


def _check_access_token(token: str, claims: JsonObject, access: str) -> None:
    """Verify `at_hash`, if the provider sends it (OpenID Connect Core 3.1.3.8). Raises Unauthenticated."""
    import jwt

    expected = claims.get("at_hash")
    if expected is None:
        return
    algorithm = str(jwt.get_unverified_header(token).get("alg", ""))
    digest = _DIGESTS.get(algorithm[-3:], hashlib.sha512)(access.encode()).digest()
    actual = base64.urlsafe_b64encode(digest[: len(digest) // 2]).rstrip(b"=").decode()
    if not _equal(actual, expected):
        raise Unauthenticated("Failed to verify OIDC token.", "its at_hash does not match the access token")


def _equal(known: str, claimed: Json) -> bool:
    # A claim may have halves of surrogate pairs, which UTF-8 lacks.
    return hmac.compare_digest(known.encode(), str(claimed).encode("utf-8", "surrogatepass"))


def enabled(ctx: Context) -> bool:
    return bool(ctx.config.oidc_client_id and ctx.config.oidc_issuer_url)


class OidcProvider:
    """OpenID Connect provider of the site."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._lock = trio.Lock()
        self._discovery: JsonObject = {}
        self._discovered_at: datetime | None = None
        self._keys: PyJWKSet | None = None
        self._certificate = load_certificate(ctx.config)
        self._keys_at: datetime | None = None
        self._failures = 0
        self._failure = ("", "")
        "Message and detail of the last failure to get a document."

    async def report_at_start(self) -> None:
        """Log once, as the server starts, that the provider cannot be used: logins would fail without an entry."""
        try:
            await self._discover()
        except BadGateway as error:
            _log.error(
                "OpenID Connect logins fail until the provider answers; check --oidc-issuer-url",
                issuer=self._ctx.config.oidc_issuer_url,
                reason=f"{error.message} {error.detail}",
            )

    async def endpoint(self) -> ProviderEndpoint:
        """Return the endpoints. Raises BadGateway when the provider cannot be reached or names no usable ones."""
        config = self._ctx.config
        document = await self._discover()
        methods = document.get("code_challenge_methods_supported")
        params = as_object(struct_value(config.oidc_auth_url_params))
        for name in ("authorization_endpoint", "token_endpoint"):
            if split_url(str(document.get(name, ""))) is None:
                raise BadGateway(_MISCONFIGURED, f"its {name} is not a URL of HTTP")
        return ProviderEndpoint(
            client_id=config.oidc_client_id,
            client_secret=config.oidc_client_secret,
            certificate=self._certificate,
            auth_url=str(document.get("authorization_endpoint", "")),
            token_url=str(document.get("token_endpoint", "")),
            scopes=config.oidc_scopes,
            redirect_url=config.oidc_redirect_url or self._ctx.access_url + CALLBACK,
            extra={str(name): str(value) for name, value in params.items()},
            pkce=isinstance(methods, Collection) and "S256" in methods,
            nonce=bool(document.get("id_token_signing_alg_values_supported")),
        )

    async def verified_claims(self, granted: TokenGrant, nonce: str) -> OidcClaims:
        """Return the verified claims of the id token, and the user info. Raises Unauthenticated, BadGateway.

        `nonce` is that of this login (empty for none): an id token with another one is rejected.
        """
        token = granted.document.get("id_token")
        if not isinstance(token, str):
            raise Unauthenticated("No id_token found in response payload. Does your OIDC provider support it?")
        claims = await self._verify(token)
        if nonce and not _equal(nonce, claims.get("nonce", "")):
            raise Unauthenticated("Failed to verify OIDC token.", "its nonce does not match this login")
        _check_access_token(token, claims, granted.access.reveal())
        info: JsonObject = {}
        url = (await self._discover()).get("userinfo_endpoint")
        if self._ctx.config.oidc_access_token_claims:
            info = await self._verify(granted.access.reveal(), audience=False)
        elif url and not self._ctx.config.oidc_ignore_userinfo:
            info = await self._document(str(url), granted)
            if info.get("sub", claims.get("sub")) != claims.get("sub"):
                raise Unauthenticated("The user info belongs to another user than the id token.")
        return OidcClaims(claims, info)

    async def _verify(self, token: str, *, audience: bool = True) -> JsonObject:
        import jwt

        config = self._ctx.config
        try:
            key = await self._key(str(jwt.get_unverified_header(token).get("kid", "")))
            claims: JsonObject = jwt.decode(
                token,
                key,
                algorithms=_ALGORITHMS,
                audience=config.oidc_client_id if audience else None,
                issuer=None if config.dangerous_oidc_skip_issuer_checks else config.oidc_issuer_url,
                leeway=_LEEWAY,
                options={"require": ["exp", "sub"], "verify_iat": False, "verify_aud": audience},
            )
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
            # The library lets errors about a value's type pass.
            raise Unauthenticated("Failed to verify OIDC token.", cut(ascii(str(error))[1:-1], _MAX_TEXT)) from error
        return claims

    async def _key(self, kid: str) -> PyJWK:
        import jwt

        for force in (False, True):
            keys = await self._key_set(force)
            usable = [key for key in keys.keys if not kid or key.key_id == kid]
            if usable:
                return usable[0]
        raise jwt.InvalidKeyError(f"the provider has no key {kid!r}")

    async def _key_set(self, force: bool) -> PyJWKSet:
        import jwt

        url = str((await self._discover()).get("jwks_uri", ""))
        async with self._turn():
            now = self._ctx.clock.now()
            age = _KEY_RETRY_INTERVAL if force else _KEY_LIFETIME
            if self._keys is None or self._keys_at is None or now - self._keys_at > age:
                self._keys = jwt.PyJWKSet.from_dict(await self._document(url))
                self._keys_at = now
            return self._keys

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Take turns to ask the provider. A failure is that of all who waited meanwhile: they would wait for a
        provider that does not answer one after the other, the hundredth for 25 minutes."""
        before = self._failures
        async with self._lock:
            if self._failures != before:
                raise BadGateway(*self._failure)
            try:
                yield
            except BadGateway as error:
                self._failures += 1
                self._failure = (error.message, error.detail)
                raise

    async def _discover(self) -> JsonObject:
        async with self._turn():
            now = self._ctx.clock.now()
            if self._discovered_at is None or now - self._discovered_at > _KEY_LIFETIME:
                issuer = self._ctx.config.oidc_issuer_url
                document = await self._document(issuer.rstrip("/") + "/.well-known/openid-configuration")
                claimed = document.get("issuer")
                if claimed != issuer and not self._ctx.config.dangerous_oidc_skip_issuer_checks:
                    raise BadGateway(
                        _MISCONFIGURED,
                        f"it calls itself {cut(ascii(claimed), _MAX_TEXT)}, --oidc-issuer-url says {masked(issuer)!r}",
                    )
                self._discovery, self._discovered_at = document, now
            return self._discovery

    async def _document(self, url: str, granted: TokenGrant | None = None) -> JsonObject:
        try:
            reply = await fetch("GET", url, bearer=granted.access if granted else None)
            if not reply.fine:
                raise BadGateway("The OIDC provider refused a request.", f"{masked(url)}: status {reply.status}")
            document = json.loads(reply.body)
            if not isinstance(document, dict):
                raise ValueError("not an object")
        except (CoderError, ValueError, RecursionError) as error:
            if isinstance(error, BadGateway):
                raise
            raise BadGateway("The OIDC provider cannot be reached.", f"{masked(url)}: {error}") from error
        return document
