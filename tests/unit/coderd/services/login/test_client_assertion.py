"""The server authenticates at an OpenID provider by a certificate."""

from __future__ import annotations

import base64
import hashlib
import ssl
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jwt
import pytest
from cryptography import x509

from coder.base.clock import FakeClock
from coder.base.errors import CoderError
from coder.base.secret import Secret
from coder.coderd.services.foundation.outgoing_requests import OutgoingReply
from coder.coderd.services.login import oauth_exchange
from coder.coderd.services.login.client_assertion import ASSERTION_TYPE, ClientCertificate
from coder.coderd.services.login.oauth_exchange import ProviderEndpoint, exchange
from tests.kit.server.server_in_process import running_coderd
from tests.kit.stand_ins.certificates import Authority

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TOKENS = "https://login.test/token"


async def test_token_request_carries_assertion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cert_file, key_file = Authority(tmp_path).issue("coder")
    sent: list[tuple[str, dict[str, str], Any]] = []

    async def fetch(_method: str, url: str, *, form: dict[str, str], headers: Any = None) -> OutgoingReply:
        sent.append((url, form, headers))
        return OutgoingReply(200, b'{"access_token":"a"}')

    monkeypatch.setattr(oauth_exchange, "fetch", fetch)
    certificate = ClientCertificate(key_file, cert_file)
    endpoint = ProviderEndpoint("id", Secret("unused"), "", TOKENS, certificate=certificate)
    ctx: Any = SimpleNamespace(clock=FakeClock(NOW))
    assert (await exchange(ctx, endpoint, "code")).access.reveal() == "a"
    ((url, form, headers),) = sent
    assert (url, headers, form["code"], form["client_id"]) == (TOKENS, None, "code", "id")
    assert form["client_assertion_type"] == ASSERTION_TYPE and "client_secret" not in form
    public = x509.load_pem_x509_certificate(Path(cert_file).read_bytes()).public_key()
    no_dates = {"verify_exp": False, "verify_iat": False, "verify_nbf": False}
    claims = jwt.decode(form["client_assertion"], public, ["ES256"], audience=TOKENS, options=no_dates)  # type: ignore[arg-type]
    assert (claims["iss"], claims["sub"], claims["exp"] - claims["iat"]) == ("id", "id", 300)
    digest = hashlib.sha1(ssl.PEM_cert_to_DER_cert(Path(cert_file).read_text()), usedforsecurity=False).digest()
    expected = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    assert jwt.get_unverified_header(form["client_assertion"])["x5t"] == expected


async def test_unusable_files_stop_the_start(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    (cert, key), (_, other) = authority.issue("coder"), authority.issue("other")
    for key_file, cert_file in ((key, ""), ("", cert), (other, cert), ("/none", cert), (cert, cert)):
        with pytest.raises(CoderError, match="--oidc-client-key-file"):
            async with running_coderd(oidc_client_key_file=key_file, oidc_client_cert_file=cert_file):
                pass
    async with running_coderd(oidc_client_key_file=key, oidc_client_cert_file=cert):
        pass
