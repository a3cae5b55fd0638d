"""A certificate authority, and what clouds sign for their machines, signed by keys of our own.

Documents, certificates, and the addresses they are fetched from. A server trusts them when it is given the certificates
(`trusting`, `aws_bundle`); the clouds are not in reach.
"""

from __future__ import annotations

import base64
import datetime
import json
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.serialization import pkcs7
from cryptography.x509.oid import AuthorityInformationAccessOID, ExtendedKeyUsageOID, NameOID

from coder.coderd.services.agents import instance_identity
from coder.coderd.services.foundation.outgoing_requests import OutgoingReply

INSTANCE = "i-0123456789abcdef0"
NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)
AZURE = "eastus.metadata.azure.com"


def private_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


KEY, OTHER_KEY = private_key(), private_key()


def certificate(
    name: str, key: rsa.RSAPrivateKey, issuer: str, by: rsa.RSAPrivateKey, *, ca: bool = False, issuer_at: str = ""
) -> x509.Certificate:
    def named(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    authority_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(by.public_key())
    built = (
        x509.CertificateBuilder()
        .subject_name(named(name))
        .issuer_name(named(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - DAY)
        .not_valid_after(NOW + DAY)
        .add_extension(x509.BasicConstraints(ca, None), True)
        .add_extension(authority_key, False)
    )
    if ca:
        usage = {
            name: name in {"key_cert_sign", "crl_sign"}
            for name in (
                "digital_signature",
                "content_commitment",
                "key_encipherment",
                "data_encipherment",
                "key_agreement",
                "key_cert_sign",
                "crl_sign",
                "encipher_only",
                "decipher_only",
            )
        }
        built = built.add_extension(x509.KeyUsage(**usage), True)
        built = built.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
    else:
        built = built.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), False)
        built = built.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False)
    if issuer_at:
        place = x509.AccessDescription(
            AuthorityInformationAccessOID.CA_ISSUERS, x509.UniformResourceIdentifier(issuer_at)
        )
        built = built.add_extension(x509.AuthorityInformationAccess([place]), False)
    return built.sign(by, hashes.SHA256())


def served(documents: dict[str, bytes]) -> Callable[..., Awaitable[OutgoingReply]]:
    """Stands in for requests to others: the clouds are not in a test's reach."""

    async def fetch(method: str, url: str, **_limit: int) -> OutgoingReply:
        assert method == "GET"
        return OutgoingReply(200, documents[url]) if url in documents else OutgoingReply(404, b"")

    return fetch


# ---- Google


def google_token(key: rsa.RSAPrivateKey = KEY, **changes: Any) -> str:
    claims = {
        "iss": "https://accounts.google.com",
        "aud": "coder",
        "exp": NOW + DAY,
        "google": {"compute_engine": {"instance_id": INSTANCE, "zone": "us-central1-a"}},
    }
    return jwt.encode(claims | changes, key, algorithm="RS256", headers={"kid": "k1"})


def google_keys() -> bytes:
    """The document in which Google says with which keys it signs."""
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
    return json.dumps({"keys": [public | {"kid": "k1", "use": "sig"}]}).encode()


# ---- Amazon


def aws_document(**changes: Any) -> str:
    return json.dumps({"instanceId": INSTANCE, "region": "us-east-1"} | changes, indent=2)


def aws_signature(document: str, key: rsa.RSAPrivateKey = KEY) -> str:
    """In lines, as the metadata service gives it."""
    return base64.encodebytes(key.sign(document.encode(), padding.PKCS1v15(), hashes.SHA256())).decode()


def aws_bundle() -> bytes:
    """The certificates `--aws-identity-certificates` is given."""
    known = [certificate("amazon.com", key, "amazon.com", key, ca=True) for key in (private_key(), KEY)]
    return b"".join(one.public_bytes(serialization.Encoding.PEM) for one in known)


# ---- Azure


ROOT_KEY, BETWEEN_KEY = private_key(), private_key()
ROOT = certificate("Root", ROOT_KEY, "Root", ROOT_KEY, ca=True)
BETWEEN_AT = "http://www.microsoft.com/pkiops/certs/between.crt"
BETWEEN = certificate("Between", BETWEEN_KEY, "Root", ROOT_KEY, ca=True)


def azure_signer(name: str = AZURE, by: rsa.RSAPrivateKey = BETWEEN_KEY, at: str = BETWEEN_AT) -> x509.Certificate:
    return certificate(name, KEY, "Between", by, issuer_at=at)


def attested(signer: x509.Certificate, machine: Any = INSTANCE, *options: pkcs7.PKCS7Options) -> bytes:
    message = json.dumps({"vmId": machine, "nonce": "x"}).encode()
    builder = pkcs7.PKCS7SignatureBuilder().set_data(message).add_signer(signer, KEY, hashes.SHA256())
    return builder.sign(serialization.Encoding.DER, [pkcs7.PKCS7Options.Binary, *options])


@contextmanager
def trusting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """For the length of the block Azure's root is ours, and what Azure and Google publish is found."""
    between = BETWEEN.public_bytes(serialization.Encoding.DER)
    published = served({BETWEEN_AT: between, instance_identity.GOOGLE_KEYS: google_keys()})
    with monkeypatch.context() as patch:
        patch.setattr(instance_identity, "roots", lambda: [ROOT])
        patch.setattr(instance_identity, "fetch", published)
        yield


class Authority:
    """`file` is its certificate; `issue` makes certificates others accept who trust it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.shift = datetime.timedelta()
        """How far from today what is issued from now on is valid."""
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test Authority")])
        built = self._build(self._name, self._key).add_extension(x509.BasicConstraints(True, None), True)
        self._certificate = built.sign(self._key, hashes.SHA256())
        self.file = str(folder / "authority.pem")
        Path(self.file).write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, *others: str) -> tuple[str, str]:
        """(certificate file, key file); for more names than one if wanted."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names = x509.SubjectAlternativeName([x509.DNSName(each) for each in (name, *others)])
        certificate = self._build(subject, key).add_extension(names, False).sign(self._key, hashes.SHA256())
        cert_file, key_file = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        cert_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return str(cert_file), str(key_file)

    def server_context(self, name: str) -> ssl.SSLContext:
        """For a server that goes by `name`."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.issue(name))
        return context

    def _build(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC) + self.shift
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
        )
