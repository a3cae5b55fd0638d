"""Machines of three clouds exchange what their cloud signed for their agent's token; nobody else does."""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import pkcs7
from cryptography.x509.oid import AuthorityInformationAccessOID, ExtendedKeyUsageOID, NameOID

from coder.coderd.services.agents import instance_identity
from coder.coderd.services.agents.signed_message import MessageRefused, open_untrusted
from coder.coderd.services.foundation.outgoing import OutgoingReply
from coder.coderd.store.agents.agents import get_agent_place
from tests.kit.agents import AgentWorld, eventually, workspace_world

INSTANCE = "i-0123456789abcdef0"
PATH = "/api/v2/workspaceagents/{}-instance-identity"
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
        .subject_name(named(name)).issuer_name(named(issuer)).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(NOW - DAY).not_valid_after(NOW + DAY)
        .add_extension(x509.BasicConstraints(ca, None), True)
        .add_extension(authority_key, False)
    )  # fmt: skip
    if ca:
        usage = {name: name in {"key_cert_sign", "crl_sign"} for name in (
            "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
            "key_cert_sign", "crl_sign", "encipher_only", "decipher_only")}  # fmt: skip
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


async def ask(view_context: AgentWorld, cloud: str, **body: Any) -> tuple[int, dict[str, Any]]:
    answer = await view_context.world.post(PATH.format(cloud), body, token="")
    return answer.status_code, answer.json()


async def agents_token(view_context: AgentWorld) -> str:
    place = await view_context.world.ctx.db.read(get_agent_place, view_context.agent_id)
    assert place is not None
    return str(place.agent.auth_token)


def served(documents: dict[str, bytes]) -> Callable[..., Awaitable[OutgoingReply]]:
    """Stands in for requests to others: the clouds are not in a test's reach."""

    async def fetch(method: str, url: str) -> OutgoingReply:
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


async def test_a_machine_of_google(monkeypatch: pytest.MonkeyPatch) -> None:
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
    keys = json.dumps({"keys": [public | {"kid": "k1", "use": "sig"}]}).encode()
    monkeypatch.setattr(instance_identity, "fetch", served({instance_identity.GOOGLE_KEYS: keys}))
    async with workspace_world(agent_fields={"instance_id": INSTANCE}) as view_context:
        token = await agents_token(view_context)
        assert await ask(view_context, "google", json_web_token=google_token()) == (200, {"session_token": token})
        assert (await ask(view_context, "google", json_web_token=google_token(), agent_name="main"))[0] == 200
        status, said = await ask(view_context, "google", json_web_token=google_token(), agent_name="other")
        assert (status, said["message"]) == (404, f'Instance with id "{INSTANCE}" not found.')
        for wrong in (
            google_token(OTHER_KEY), google_token(iss="https://example.com"), google_token(exp=NOW - DAY), "", "x.y.z",
            google_token(aud="https://another.service"),
            jwt.encode({"iss": "accounts.google.com", "exp": NOW + DAY}, "s" * 32, "HS256", headers={"kid": "k1"}),
        ):  # fmt: skip
            status, said = await ask(view_context, "google", json_web_token=wrong)
            assert (status, said["message"]) == (401, "Invalid GCP identity."), wrong
        claims: tuple[Any, ...] = ({}, {"compute_engine": {}}, {"compute_engine": []}, "text")
        for claim in claims:
            status, said = await ask(view_context, "google", json_web_token=google_token(google=claim))
            assert (status, said["message"]) == (400, "Error decoding JWT claims."), claim


async def test_a_machine_two_workspaces_claim_is_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    """A template that names somebody else's machine does not get its agent to run there."""
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
    keys = json.dumps({"keys": [public | {"kid": "k1", "use": "sig"}]}).encode()
    monkeypatch.setattr(instance_identity, "fetch", served({instance_identity.GOOGLE_KEYS: keys}))
    async with workspace_world(agent_fields={"instance_id": INSTANCE}) as view_context:
        world, template = view_context.world, view_context.workspace["template_id"]
        _, token = await world.member("another")
        made = await world.post("/api/v2/users/me/workspaces", {"template_id": template, "name": "thief"}, token=token)
        assert made.status_code == 201, made.text

        async def running() -> bool:
            found = (await world.get(f"/api/v2/workspaces/{made.json()['id']}")).json()
            return bool(found["latest_build"]["status"] == "running")

        await eventually(running)
        for name in ({}, {"agent_name": "main"}):
            status, said = await ask(view_context, "google", json_web_token=google_token(), **name)
            assert (status, "session_token" in said) == (409, False)
        stop = {"transition": "stop"}
        await world.post(f"/api/v2/workspaces/{made.json()['id']}/builds", stop, token=token)

        async def mine_again() -> bool:
            return (await ask(view_context, "google", json_web_token=google_token()))[0] == 200

        await eventually(mine_again)


# ---- Amazon


def aws_document(**changes: Any) -> str:
    return json.dumps({"instanceId": INSTANCE, "region": "us-east-1"} | changes, indent=2)


def aws_signature(document: str, key: rsa.RSAPrivateKey = KEY) -> str:
    """In lines, as the metadata service gives it."""
    return base64.encodebytes(key.sign(document.encode(), padding.PKCS1v15(), hashes.SHA256())).decode()


async def test_a_machine_of_amazon(tmp_path: Path) -> None:
    bundle = tmp_path / "aws.pem"
    known = [certificate("amazon.com", key, "amazon.com", key, ca=True) for key in (private_key(), KEY)]
    bundle.write_bytes(b"".join(one.public_bytes(serialization.Encoding.PEM) for one in known))
    settings = {"aws_identity_certificates": str(bundle)}
    async with workspace_world(agent_fields={"instance_id": INSTANCE}, **settings) as view_context:
        document = aws_document()
        found = await ask(view_context, "aws", document=document, signature=aws_signature(document))
        assert found == (200, {"session_token": await agents_token(view_context)})
        other = aws_document(instanceId="i-2")
        assert (await ask(view_context, "aws", document=other, signature=aws_signature(other)))[0] == 404
        for told, signature in (
            (other, aws_signature(aws_document())),
            (document, aws_signature(document, OTHER_KEY)),
            (document, "%%%"),
            ("y", "x"),
            ("[]", "x"),
            (aws_document(instanceId=5), "x"),
            ("", ""),
        ):
            status, said = await ask(view_context, "aws", document=told, signature=signature)
            assert (status, said["message"]) == (401, "Invalid AWS identity.")


async def test_without_amazons_certificates_the_answer_says_what_is_missing() -> None:
    async with workspace_world(agent_fields={"instance_id": INSTANCE}) as view_context:
        document = aws_document()
        status, said = await ask(view_context, "aws", document=document, signature=aws_signature(document))
        assert status == 401 and "--aws-identity-certificates" in said["detail"]


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
    with monkeypatch.context() as patch:
        patch.setattr(instance_identity, "roots", lambda: [ROOT])
        patch.setattr(
            instance_identity, "fetch", served({BETWEEN_AT: BETWEEN.public_bytes(serialization.Encoding.DER)})
        )
        yield


async def test_a_machine_of_azure(monkeypatch: pytest.MonkeyPatch) -> None:
    async with workspace_world(agent_fields={"instance_id": INSTANCE}) as view_context:
        with trusting(monkeypatch):
            for options in ((), (pkcs7.PKCS7Options.NoAttributes,)):
                message = base64.b64encode(attested(azure_signer(), INSTANCE, *options)).decode()
                found = await ask(view_context, "azure", signature=message, encoding="pkcs7")
                assert found == (200, {"session_token": await agents_token(view_context)})
            for wrong in (
                attested(azure_signer("metadata.azure.com.example.com")),
                attested(azure_signer("xmetadata.azure.com")),
                attested(azure_signer(by=OTHER_KEY)),
                attested(azure_signer(at="http://example.com/between.crt")),
                attested(azure_signer(at="http://www.microsoft.com/absent.crt")),
                attested(azure_signer(), 5),
                attested(azure_signer()).replace(INSTANCE.encode(), INSTANCE[::-1].encode()),
                attested(azure_signer())[:-1] + b"\0",
                b"",
            ):
                status, said = await ask(
                    view_context, "azure", signature=base64.b64encode(wrong).decode(), encoding="pkcs7"
                )
                assert (status, said["message"]) == (401, "Invalid Azure identity."), wrong
            assert (await ask(view_context, "azure", signature="%", encoding="pkcs7"))[0] == 401
            message = base64.b64encode(attested(azure_signer(), "another")).decode()
            assert (await ask(view_context, "azure", signature=message, encoding="pkcs7"))[0] == 404


def test_a_message_names_its_signer_and_cannot_be_changed() -> None:
    signer = azure_signer()
    message = attested(signer)
    found = open_untrusted(message)
    assert json.loads(found.content)["vmId"] == INSTANCE
    assert found.signer == signer and found.others == ()
    for at in range(0, len(message), 7):
        changed = bytearray(message)
        changed[at] ^= 1
        try:
            opened = open_untrusted(bytes(changed))
        except MessageRefused:
            continue
        # What is not covered by the signature may change: unused fields, the certificate's own signature.
        assert opened.content == found.content
        assert opened.signer.public_key() == signer.public_key()


def test_this_machine_trusts_somebody() -> None:
    assert len(instance_identity.roots()) > 10
