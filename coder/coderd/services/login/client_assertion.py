"""Authentication of this server at an OpenID provider by a certificate instead of a secret (RFC 7523 section 2.2).

The token request carries a short signed statement; its header names the certificate by its SHA-1 (RFC 7515 section
4.1.7).
"""

from __future__ import annotations

import base64
import hashlib
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from coder.base.errors import CoderError

if TYPE_CHECKING:
    from coder.coderd.config.settings import ServerConfig

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_LIFETIME = timedelta(minutes=5)


class ClientCertificate:
    """A private key and its certificate, read from PEM files. Raises CoderError `bad_option` for unusable ones."""

    def __init__(self, key_file: str, cert_file: str) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec, rsa
        from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

        try:
            certificate = x509.load_pem_x509_certificate(Path(cert_file).read_bytes())
            key = load_pem_private_key(Path(key_file).read_bytes(), None)
        except (OSError, ValueError, TypeError) as error:
            raise _unusable(str(error)) from error
        if not isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
            raise _unusable("the key is neither RSA nor on an elliptic curve")
        if key.public_key() != certificate.public_key():
            raise _unusable("the key does not belong to the certificate")
        self._key = key
        self._algorithm = "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"
        digest = hashlib.sha1(certificate.public_bytes(Encoding.DER), usedforsecurity=False).digest()
        self._thumbprint = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    def fields(self, client_id: str, token_url: str, now: datetime) -> dict[str, str]:
        """Return the form fields that authenticate a token request."""
        import jwt

        claims = {
            "iss": client_id,
            "sub": client_id,
            "aud": token_url,
            "jti": str(uuid4()),
            "iat": now,
            "nbf": now,
            "exp": now + _LIFETIME,
        }
        assertion = jwt.encode(claims, self._key, self._algorithm, headers={"x5t": self._thumbprint})
        return {"client_id": client_id, "client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion}


def load_certificate(config: ServerConfig) -> ClientCertificate | None:
    """Return the certificate of the settings; None without one. Raises CoderError `bad_option`."""
    key_file, cert_file = config.oidc_client_key_file, config.oidc_client_cert_file
    return ClientCertificate(key_file, cert_file) if key_file or cert_file else None


def _unusable(reason: str) -> CoderError:
    return CoderError(
        "bad_option",
        f"--oidc-client-key-file and --oidc-client-cert-file cannot be used: {reason}",
        "Give a PEM key without a passphrase, and its PEM certificate.",
    )
