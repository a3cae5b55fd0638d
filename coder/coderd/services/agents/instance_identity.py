"""Instance identity: a cloud machine authenticates with a signed document and gets its agent's token.

This module decides which signatures are trusted, which instance a document identifies, and which agent runs there. A
template declares `auth = "…-instance-identity"`; the instance id is in the state of each build. The signed message is
`signed_message.py`, the machine's side is `agent/instance_identity.py`.

Source: docs/protocol/agents.md#outside-the-rpc-connection, and the clouds' own formats: identity tokens of Google
Compute Engine (RS256, keys at `GOOGLE_KEYS`); instance identity documents of Amazon EC2 (RSA with SHA-256 over the
document, a certificate per region, which the operator configures because Amazon does not serve them signed); attested
documents of Azure (a message signed by a certificate for metadata.azure.com under public roots).
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import ssl
import warnings
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

from coder.api.base.refusals import Conflict, Invalid, NotFound, Unauthenticated
from coder.api.field_rules.rules import explain_base64
from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.coderd.services.foundation.outgoing_requests import SMALL, fetch
from coder.coderd.store.agents import agents as agent_store
from coder.domain.foundation.go_json import explain_rest
from coder.domain.foundation.web_addresses import split_untrusted

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

    from coder.coderd.services.foundation.context import Context

GOOGLE_KEYS = "https://www.googleapis.com/oauth2/v3/certs"
GOOGLE_AUDIENCE = "coder"
"Audience of tokens; a token that a machine presents to another service is not accepted."
_GOOGLE_ISSUERS = ["https://accounts.google.com", "accounts.google.com"]
_AZURE_NAME = re.compile(r"(?:[a-z0-9-]+\.)*metadata\.(?:azure\.com|azure\.us|azure\.cn|microsoftazure\.de)", re.ASCII)
_AZURE_ISSUERS = frozenset(
    {"www.microsoft.com", "caissuers.microsoft.com", "cacerts.digicert.com", "cacerts.digicert.cn"}
)
"""Hosts of intermediate certificates for Azure: the URL comes in an untrusted message."""
_MAX_INTERMEDIATES = 3
_log = get_logger("agents")
_CACHE_TIME, _RETRY_TIME = timedelta(hours=1), timedelta(minutes=1)
_LEEWAY = 30
"""Seconds by which another machine's clock may differ."""
_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----")
_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")


class Clouds:
    """Keys of clouds, as this server knows them."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._lock = trio.Lock()
        self._google: Any = None
        self._google_at: datetime | None = None
        self._intermediates: dict[str, Certificate] = {}

    # ---- Google

    async def google(self, token: str) -> str:
        """Return the instance id in a token of Compute Engine. Raises Unauthenticated, Invalid."""
        import jwt

        parts = len(token.split("."))
        if parts != 3:
            raise Unauthenticated(
                "Invalid GCP identity.", f"idtoken: invalid token, token must have three segments; found {parts}"
            )
        try:
            key = await self._google_key(str(jwt.get_unverified_header(token).get("kid", "")))
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=["RS256"],
                issuer=_GOOGLE_ISSUERS,
                audience=GOOGLE_AUDIENCE,
                leeway=_LEEWAY,
                options={"require": ["exp", "iss", "aud"], "verify_iat": False},
            )
        except (jwt.PyJWTError, CoderError, ValueError) as error:
            raise Unauthenticated("Invalid GCP identity.", str(error)) from error
        engine = (claims.get("google") or {}).get("compute_engine") if isinstance(claims.get("google"), dict) else None
        instance_id = engine.get("instance_id") if isinstance(engine, dict) else None
        if not isinstance(instance_id, str) or not instance_id:
            raise Invalid("Error decoding JWT claims.", "the token names no instance; it must be of the format full")
        return instance_id

    async def _google_key(self, kid: str) -> Any:
        import jwt

        for age in (_CACHE_TIME, _RETRY_TIME):
            async with self._lock:
                now = self._ctx.clock.now()
                if self._google is None or self._google_at is None or now - self._google_at > age:
                    self._google = jwt.PyJWKSet.from_dict((await fetch("GET", GOOGLE_KEYS)).document())
                    self._google_at = now
                keys = self._google.keys
            for key in keys:
                if kid and key.key_id == kid:
                    return key
        raise jwt.InvalidKeyError(f"Google has no key {kid!r}")

    # ---- Amazon

    def aws(self, document: str, signature: str) -> str:
        """Return the instance id in an identity document. Raises Unauthenticated."""
        try:
            instance_id = json.loads(document)["instanceId"]
        except (ValueError, RecursionError, KeyError, TypeError) as error:
            reason = explain_rest(document.encode()) or "it is no JSON with an instanceId"
            raise _not_aws(f"parse document: {reason}") from error
        try:
            # The metadata service returns Base64 in lines.
            raw = base64.b64decode("".join(signature.split()), validate=True)
        except (ValueError, binascii.Error) as error:
            raise _not_aws("decode signature: it is no base64") from error
        if not isinstance(instance_id, str) or not instance_id:
            raise _not_aws("parse document: its instanceId is no text")
        if not any(_signed_by(certificate, raw, document.encode()) for certificate in self._aws_certificates()):
            raise _not_aws("the signature matches none of the configured certificates")
        return instance_id

    def _aws_certificates(self) -> list[Certificate]:
        path = self._ctx.config.aws_identity_certificates
        if not path:
            raise _not_aws("configure the certificates of your regions by --aws-identity-certificates")
        return _read_bundle(Path(path))

    # ---- Azure

    async def azure(self, signature: str) -> str:
        """Return the machine id in an attested document. Raises Unauthenticated."""
        from coder.coderd.services.agents.signed_message import MessageRefused, open_untrusted

        encoded = "".join(signature.split())
        try:
            if not_base64 := explain_base64(encoded):
                raise ValueError(f"decode base64: {not_base64}")
            signed = open_untrusted(base64.b64decode(encoded, validate=True))
            await self._trust_azure(signed.signer, list(signed.others))
            machine_id = json.loads(signed.content)["vmId"]
        except (ValueError, RecursionError, KeyError, TypeError, MessageRefused, CoderError) as error:
            raise Unauthenticated("Invalid Azure identity.", str(error)) from error
        if not isinstance(machine_id, str) or not machine_id:
            raise Unauthenticated("Invalid Azure identity.", "the document names no machine")
        return machine_id

    async def _trust_azure(self, signer: Certificate, intermediates: list[Certificate]) -> None:
        """Require a certificate of Azure's metadata service. Raises MessageRefused."""
        from cryptography import x509
        from cryptography.x509 import verification

        from coder.coderd.services.agents.signed_message import MessageRefused

        names = signer.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        name = str(names[0].value).lower() if len(names) == 1 else ""
        if not _AZURE_NAME.fullmatch(name):
            raise MessageRefused("the signer is not the metadata service of Azure")
        last = signer
        for _ in range(_MAX_INTERMEDIATES):
            issuer = await self._issuer_of(last)
            if issuer is None:
                break
            intermediates.append(issuer)
            last = issuer
        policy = verification.PolicyBuilder().store(verification.Store(roots())).time(self._ctx.clock.now())
        try:
            policy.build_server_verifier(x509.DNSName(name)).verify(signer, intermediates)
        except verification.VerificationError as error:
            raise MessageRefused("the certificate of the signer is not trusted") from error

    async def _issuer_of(self, certificate: Certificate) -> Certificate | None:
        from cryptography import x509
        from cryptography.x509.oid import AuthorityInformationAccessOID

        from coder.coderd.services.agents.signed_message import certificate_untrusted

        try:
            access = certificate.extensions.get_extension_for_class(x509.AuthorityInformationAccess).value
        except (x509.ExtensionNotFound, ValueError):
            return None
        for description in access:
            url = description.access_location.value
            if description.access_method != AuthorityInformationAccessOID.CA_ISSUERS or not isinstance(url, str):
                continue
            parts = split_untrusted(url)
            if parts.scheme not in {"http", "https"} or parts.hostname not in _AZURE_ISSUERS:
                continue
            if url not in self._intermediates and len(self._intermediates) < 100:
                self._intermediates[url] = certificate_untrusted((await fetch("GET", url, limit=SMALL)).body)
            return self._intermediates.get(url)
        return None


def _signed_by(certificate: Certificate, signature: bytes, document: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding, rsa

    key = certificate.public_key()
    if not isinstance(key, rsa.RSAPublicKey):
        return False
    try:
        key.verify(signature, document, padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature:
        return False
    return True


def _not_aws(reason: str) -> Unauthenticated:
    return Unauthenticated("Invalid AWS identity.", reason)


def _read_bundle(path: Path) -> list[Certificate]:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificates(path.read_bytes())
    except (OSError, ValueError) as error:
        raise CoderError(
            "identity_certificates", f"no certificates can be read from {path}", "It must be a PEM file."
        ) from error


@lru_cache(maxsize=1)
def roots() -> list[Certificate]:
    """Return the certificate authorities that this machine trusts. Raises CoderError when there are none."""
    paths = ssl.get_default_verify_paths()
    for path in (os.environ.get(paths.openssl_cafile_env), paths.cafile, *_BUNDLES):
        if path and Path(path).is_file():
            return _read_roots(Path(path).read_bytes())
    raise CoderError("identity_certificates", "this machine trusts no certificate authority")


def _read_roots(bundle: bytes) -> list[Certificate]:
    """Return the certificates of a bundle; an invalid one among many is skipped."""
    from cryptography import x509

    certificates = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for text in _PEM.findall(bundle):
            try:
                certificates.append(x509.load_pem_x509_certificate(text))
            except ValueError:
                continue
    return certificates


async def token_of(ctx: Context, instance_id: str, agent_name: str) -> str:
    """Return the token of the agent that runs on this instance. Raises NotFound, Conflict.

    Templates name instances, so a template author may name another user's machine, which would then run the author's
    workspace. An instance of several workspaces therefore gets no token.
    """
    places = await ctx.db.read(agent_store.list_agents_by_instance, instance_id)
    if len({current.workspace_id for current in places}) > 1:
        claims = [str(current.workspace_id) for current in places]
        _log.warn("several workspaces claim to run on one machine", instance=instance_id, workspaces=claims)
        raise Conflict(
            "More than one workspace claims to run on this instance.",
            "The server's log lists them; stop the workspaces that the machine does not belong to.",
        )
    matching = [current for current in places if agent_name in {"", current.agent.name}]
    if not matching:
        raise NotFound(f"Instance with id {json.dumps(instance_id)} not found.")
    return str(matching[0].agent.auth_token)
