"""Stand-in identity providers on loopback: OIDC, OAuth2 tokens, device flow (RFC 8628).

    with identity_provider() as idp:
        idp.claims = {"sub": "s-1", …}
        … idp.url …

It behaves as the recordings describe. The code `bad` is refused. `idp.valid` is what /validate answers; `idp.asked`
keeps the forms sent to /token. `DeviceProvider` is the provider of external authentication by device code.
"""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT_ID = "client"
KEY_ID = "k1"


@dataclass
class IdentityProvider:
    """What it says, to be changed by tests at any time."""

    url: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    "What /userinfo says beside the subject."
    access_claims: dict[str, Any] = field(default_factory=dict)
    "When there are some, access tokens are signed documents with them."
    valid: bool = True
    audience: str = CLIENT_ID
    pending: int = 0
    "So often the device flow answers that the person has not agreed yet."
    refuse_refresh: bool = False
    user_code: str = "ABCD-EFGH"
    device_code: str = "dc"
    interval: int = 1
    key_id: str = KEY_ID
    conforms: bool = False
    "Names what OpenID Discovery requires of a provider, whereupon clients bind id tokens to their conversations."
    granted: int = 0
    github: dict[str, Any] = field(default_factory=dict)
    "Answers of GitHub's API by path, for a server whose enterprise URL is this one."
    asked: list[dict[str, str]] = field(default_factory=list)
    key: Any = field(default_factory=lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048))
    signing_key: Any = None
    "Another key than the published one, to forge tokens."

    def id_token(self) -> str:
        return self._signed({"aud": self.audience, **self.claims})

    def _signed(self, told: dict[str, Any]) -> str:
        now = int(time.time())
        claims = {"iss": self.url, "iat": now, "exp": now + 3600, **told}
        return jwt.encode(claims, self.signing_key or self.key, algorithm="RS256", headers={"kid": self.key_id})

    def answer(self, path: str, form: dict[str, str]) -> tuple[int, Any]:
        """(status, JSON) of one request."""
        if path == "/.well-known/openid-configuration":
            return 200, {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/auth",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/jwks",
                "userinfo_endpoint": f"{self.url}/userinfo",
                **({"id_token_signing_alg_values_supported": ["RS256"]} if self.conforms else {}),
            }
        if path == "/jwks":
            key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
            return 200, {"keys": [{**key, "kid": self.key_id, "use": "sig", "alg": "RS256"}]}
        if path == "/userinfo":
            return 200, {"sub": self.claims.get("sub"), **self.info}
        if path == "/validate":
            return (200, {"login": "octo", "id": 7, "name": "Octo Cat"}) if self.valid else (401, {})
        if path in {"/device", "/login/device/code"}:
            return 200, {
                "device_code": self.device_code,
                "user_code": self.user_code,
                "verification_uri": f"{self.url}/activate",
                "expires_in": 900,
                "interval": self.interval,
            }
        if path in {"/token", "/login/oauth/access_token"}:
            return self._token(form)
        if path.startswith("/api/v3/"):
            found = self.github.get(path.removeprefix("/api/v3"))
            return (200, found) if found is not None else (404, {})
        return 404, {}

    def _token(self, form: dict[str, str]) -> tuple[int, Any]:
        self.asked.append(form)
        if form.get("code") == "bad":
            return 400, {"error": "invalid_grant"}
        if form.get("grant_type") == "refresh_token" and self.refuse_refresh:
            return 400, {"error": "invalid_grant"}
        if form.get("device_code") and self.pending:
            self.pending -= 1
            return 400, {"error": "authorization_pending"}
        self.granted += 1
        access = self._signed(self.access_claims) if self.access_claims else f"at-{self.granted}"
        return 200, {
            "access_token": access,
            "refresh_token": "rt",
            "token_type": "bearer",
            "expires_in": 3600,
            "id_token": self.id_token(),
        }


@contextmanager
def identity_provider() -> Iterator[IdentityProvider]:
    """Runs in a thread of its own; gone when the block ends."""
    provider = IdentityProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply({})

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            self._reply({name: values[0] for name, values in parse_qs(text).items()})

        def _reply(self, form: dict[str, str]) -> None:
            status, document = provider.answer(self.path.partition("?")[0], form)
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        provider.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()


class DeviceProvider(http.server.ThreadingHTTPServer):
    """It gives out a code, and a token once somebody has confirmed it."""

    confirmed = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _DevicePages)
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def variables(self, number: int) -> dict[str, str]:
        """Of a server where it is the provider `desk`, as the environment says it."""
        said = {"ID": "desk", "TYPE": "custom", "DISPLAY_NAME": "Desk", "CLIENT_ID": "coder", "DEVICE_FLOW": "true"}
        said |= {"AUTH_URL": f"{self.url}/auth", "DEVICE_CODE_URL": f"{self.url}/code"}
        said |= {"TOKEN_URL": f"{self.url}/token", "VALIDATE_URL": f"{self.url}/me"}
        return {f"CODER_EXTERNAL_AUTH_{number}_{name}": value for name, value in said.items()}


class _DevicePages(http.server.BaseHTTPRequestHandler):
    server: DeviceProvider

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/code":
            page = f"{self.server.url}/confirm"
            self._say(200, {"device_code": "d", "user_code": "WDJB-MJHT", "verification_uri": page, "interval": 1})
        elif self.server.confirmed:
            self._say(200, {"access_token": "t", "token_type": "bearer"})
        else:
            self._say(400, {"error": "authorization_pending"})

    def do_GET(self) -> None:
        self._say(200, {"login": "ada", "name": "Ada"})

    def _say(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass
