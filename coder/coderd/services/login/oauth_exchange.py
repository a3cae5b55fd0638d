"""The client's half of OAuth2 (RFC 6749): authorization URLs of providers, and token requests to them."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote_plus, urlencode, urlsplit

from coder.api.base.refusals import Failed
from coder.api.login.external_auth import ExternalAuthDevice
from coder.base.json_types import Json
from coder.base.quoted import cut
from coder.base.secret import Secret
from coder.coderd.services.foundation.outgoing_requests import OutgoingReply, fetch, split_url
from coder.net.errors import NetError

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.services.login.client_assertion import ClientCertificate


@dataclass(frozen=True, slots=True)
class ProviderEndpoint:
    """Registration of this server at a provider."""

    client_id: str
    client_secret: Secret
    auth_url: str
    token_url: str
    scopes: Sequence[str] = ()
    redirect_url: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)
    "Additional parameters of the authorization URL."
    pkce: bool = False
    "Whether a code is bound to this login by PKCE (RFC 7636)."
    nonce: bool = False
    """Whether an id token is bound to this login. Every OpenID provider supports it. A bare OAuth2 server, with a
    discovery document that lacks the fields required by Discovery 1.0, need not.
    """

    certificate: ClientCertificate | None = None
    "Authenticates this server instead of the secret."

    def new_verifier(self) -> str:
        """Return a PKCE verifier for one login; empty if the provider does not support PKCE."""
        return secrets.token_urlsafe(48) if self.pkce else ""


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """Tokens of a provider. `expires_at` is None if the provider does not say."""

    access: Secret
    refresh: Secret
    expires_at: datetime | None
    document: Mapping[str, Json]


REFUSED = "Failed exchanging Oauth code."


class ExchangeRefused(Failed):
    """The provider refused the code or the refresh token; `detail` quotes its reason, never a secret."""

    def __init__(self, message: str, detail: str = "", *, error: str = "") -> None:
        super().__init__(message, detail)
        self.error = error
        "Error code of RFC 6749; empty if the provider could not be reached."


def authorize_url(endpoint: ProviderEndpoint, state: str, verifier: str = "", nonce: str = "") -> str:
    """Return the URL to log in at. `verifier` (PKCE, RFC 7636) and `nonce` (OpenID) may be empty."""
    query = {
        **endpoint.extra,
        "client_id": endpoint.client_id,
        "redirect_uri": endpoint.redirect_url,
        "response_type": "code",
        "scope": " ".join(endpoint.scopes),
        "state": state,
        "nonce": nonce,
        **({"code_challenge": challenge_of(verifier), "code_challenge_method": "S256"} if verifier else {}),
    }
    joined = urlencode(sorted((name, value) for name, value in query.items() if value))
    return f"{endpoint.auth_url}{'&' if urlsplit(endpoint.auth_url).query else '?'}{joined}"


def challenge_of(verifier: str) -> str:
    """Return the S256 challenge of PKCE."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


async def exchange(ctx: Context, endpoint: ProviderEndpoint, code: str, verifier: str = "") -> TokenGrant:
    """Exchange a code. Raises ExchangeRefused."""
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": endpoint.redirect_url}
    if verifier:
        form["code_verifier"] = verifier
    return await _ask(ctx, endpoint, form)


async def renew(ctx: Context, endpoint: ProviderEndpoint, refresh: Secret) -> TokenGrant:
    """Refresh a token. The old refresh token stays valid if the provider sends no new one. Raises ExchangeRefused."""
    granted = await _ask(ctx, endpoint, {"grant_type": "refresh_token", "refresh_token": refresh.reveal()})
    if granted.refresh:
        return granted
    return TokenGrant(granted.access, refresh, granted.expires_at, granted.document)


async def _ask(ctx: Context, endpoint: ProviderEndpoint, form: Mapping[str, str]) -> TokenGrant:
    """Send a token request: first with HTTP Basic, then with the secret in the form. Providers accept one or the other.

    Source: RFC 6749, section 2.3.1.
    """
    if endpoint.certificate is not None:
        proof = endpoint.certificate.fields(endpoint.client_id, endpoint.token_url, ctx.clock.now())
        try:
            return parse_token_reply(ctx, await fetch("POST", endpoint.token_url, form={**form, **proof}))
        except NetError as error:
            raise ExchangeRefused(REFUSED, error.message) from error
    pair = f"{quote_plus(endpoint.client_id)}:{quote_plus(endpoint.client_secret.reveal())}"
    basic = {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}
    form_with_secret = {**form, "client_id": endpoint.client_id, "client_secret": endpoint.client_secret.reveal()}
    try:
        reply = await fetch("POST", endpoint.token_url, form=form, headers=basic)
        if not reply.fine:
            second = await fetch("POST", endpoint.token_url, form=form_with_secret)
            reply = second if second.fine or reply.status == 401 else reply
        return parse_token_reply(ctx, reply)
    except NetError as error:
        raise ExchangeRefused(REFUSED, error.message) from error


def parse_token_reply(ctx: Context, reply: OutgoingReply) -> TokenGrant:
    """Parse the reply of a token endpoint. Raises ExchangeRefused."""
    try:
        document = reply.document()
    except ValueError as error:
        raise ExchangeRefused(REFUSED, f"status {reply.status}: {error}") from error
    access = document.get("access_token")
    if not reply.fine or not isinstance(access, str) or not access:
        raise ExchangeRefused(REFUSED, _error_text(document, reply.status), error=_short(document.get("error", "")))
    if not _TOKEN.fullmatch(access):
        raise ExchangeRefused(REFUSED, "the provider sent an access token with characters that no token has")
    refresh = document.get("refresh_token")
    return TokenGrant(
        Secret(access),
        Secret(refresh if isinstance(refresh, str) and _TOKEN.fullmatch(refresh) else ""),
        _expiry(ctx.clock.now(), document.get("expires_in")),
        document,
    )


def parse_device_reply(reply: OutgoingReply) -> ExternalAuthDevice:
    """Parse the reply of a device authorization endpoint (RFC 8628 section 3.2). Raises ValueError, KeyError."""
    document = reply.document()
    codes = [str(document[name]) for name in ("device_code", "user_code", "verification_uri")]
    if not all(_TOKEN.fullmatch(code) for code in codes) or split_url(codes[2]) is None:
        raise ValueError("its codes or its URL have characters that none has")
    return ExternalAuthDevice(
        device_code=codes[0],
        user_code=codes[1],
        verification_uri=codes[2],
        expires_in=parse_seconds(document.get("expires_in"), 900),
        interval=parse_seconds(document.get("interval"), 5),
    )


def _error_text(document: Mapping[str, Json], status: int) -> str:
    error, description = document.get("error"), document.get("error_description")
    if not error:
        return f"the provider answered status {status} without an access token"
    return f'oauth2: "{_short(error)}"' + (f' "{_short(description)}"' if description else "")


_TOKEN = re.compile(r"[\x20-\x7e]*[\x21-\x7e]")
"""RFC 6749 appendix A.12. A header takes no other characters, and none takes a space at its end."""
_MAX_TEXT = 1000
"""Characters of a provider's error (ours) that are shown."""


def _short(value: Json) -> str:
    """Return a provider's text without characters that act on a terminal or cannot be encoded."""
    return "".join(char if char.isprintable() else "\ufffd" for char in cut(str(value), _MAX_TEXT))


_MAX_SECONDS = 10**9
"""Some thirty years. A larger lifetime is a mistake of the provider, and overflows dates and encoders."""


def parse_seconds(value: Json, otherwise: int) -> int:
    """Return a number of seconds from a provider's JSON; `otherwise` for anything that is no sensible number."""
    if not isinstance(value, int | float | str):
        return otherwise
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return otherwise
    return number if 0 < number < _MAX_SECONDS else otherwise


def _expiry(now: datetime, seconds: Json) -> datetime | None:
    if not isinstance(seconds, int | float | str):
        return None
    try:
        value = float(seconds or 0)
    except (TypeError, ValueError, OverflowError):
        return None
    return now + timedelta(seconds=value) if 0 < value < _MAX_SECONDS else None
