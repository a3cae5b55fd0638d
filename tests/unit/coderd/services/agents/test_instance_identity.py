"""Machines of three clouds exchange signed documents for their agent's token; other machines are rejected."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import pkcs7

from coder.coderd.services.agents import instance_identity
from coder.coderd.services.agents.signed_message import MessageRefused, open_untrusted
from coder.coderd.store.agents.system_agents import get_current_agent
from tests.kit.agents.scripted_agent import AgentWorld, eventually, workspace_world
from tests.kit.stand_ins.certificates import (
    DAY,
    INSTANCE,
    NOW,
    OTHER_KEY,
    attested,
    aws_bundle,
    aws_document,
    aws_signature,
    azure_signer,
    google_keys,
    google_token,
    served,
    trusting,
)

PATH = "/api/v2/workspaceagents/{}-instance-identity"


async def ask(view_context: AgentWorld, cloud: str, **body: Any) -> tuple[int, dict[str, Any]]:
    answer = await view_context.world.post(PATH.format(cloud), body, token="")
    return answer.status_code, answer.json()


async def agents_token(view_context: AgentWorld) -> str:
    current = await view_context.world.ctx.db.read(get_current_agent, view_context.agent_id)
    assert current is not None
    return str(current.agent.auth_token)


# ---- Google


async def test_google_machine_gets_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instance_identity, "fetch", served({instance_identity.GOOGLE_KEYS: google_keys()}))
    async with workspace_world(agent_fields={"instance_id": INSTANCE}) as view_context:
        token = await agents_token(view_context)
        assert await ask(view_context, "google", json_web_token=google_token()) == (200, {"session_token": token})
        assert (await ask(view_context, "google", json_web_token=google_token(), agent_name="main"))[0] == 200
        status, answer = await ask(view_context, "google", json_web_token=google_token(), agent_name="other")
        assert (status, answer["message"]) == (404, f'Instance with id "{INSTANCE}" not found.')
        for invalid in (
            google_token(OTHER_KEY),
            google_token(iss="https://example.com"),
            google_token(exp=NOW - DAY),
            "",
            "x.y.z",
            google_token(aud="https://another.service"),
            jwt.encode({"iss": "accounts.google.com", "exp": NOW + DAY}, "s" * 32, "HS256", headers={"kid": "k1"}),
        ):
            status, answer = await ask(view_context, "google", json_web_token=invalid)
            assert (status, answer["message"]) == (401, "Invalid GCP identity."), invalid
        claims: tuple[Any, ...] = ({}, {"compute_engine": {}}, {"compute_engine": []}, "text")
        for claim in claims:
            status, answer = await ask(view_context, "google", json_web_token=google_token(google=claim))
            assert (status, answer["message"]) == (400, "Error decoding JWT claims."), claim


async def test_machine_claimed_twice_gets_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """A template that names another user's machine does not get its agent to run there."""
    monkeypatch.setattr(instance_identity, "fetch", served({instance_identity.GOOGLE_KEYS: google_keys()}))
    async with workspace_world(agent_fields={"instance_id": INSTANCE}) as view_context:
        world, template = view_context.world, view_context.workspace["template_id"]
        _, token = await world.member("another")
        response = await world.post(
            "/api/v2/users/me/workspaces", {"template_id": template, "name": "thief"}, token=token
        )
        assert response.status_code == 201, response.text

        async def running() -> bool:
            result = (await world.get(f"/api/v2/workspaces/{response.json()['id']}")).json()
            return bool(result["latest_build"]["status"] == "running")

        await eventually(running)
        for name in ({}, {"agent_name": "main"}):
            status, answer = await ask(view_context, "google", json_web_token=google_token(), **name)
            assert (status, "session_token" in answer) == (409, False)
        stop = {"transition": "stop"}
        await world.post(f"/api/v2/workspaces/{response.json()['id']}/builds", stop, token=token)

        async def mine_again() -> bool:
            return (await ask(view_context, "google", json_web_token=google_token()))[0] == 200

        await eventually(mine_again)


# ---- Amazon


async def test_amazon_machine_gets_token(tmp_path: Path) -> None:
    bundle = tmp_path / "aws.pem"
    bundle.write_bytes(aws_bundle())
    settings = {"aws_identity_certificates": str(bundle)}
    async with workspace_world(agent_fields={"instance_id": INSTANCE}, **settings) as view_context:
        document = aws_document()
        result = await ask(view_context, "aws", document=document, signature=aws_signature(document))
        assert result == (200, {"session_token": await agents_token(view_context)})
        other = aws_document(instanceId="i-2")
        assert (await ask(view_context, "aws", document=other, signature=aws_signature(other)))[0] == 404
        for claimed, signature in (
            (other, aws_signature(aws_document())),
            (document, aws_signature(document, OTHER_KEY)),
            (document, "%%%"),
            ("y", "x"),
            ("[]", "x"),
            (aws_document(instanceId=5), "x"),
            ("", ""),
        ):
            status, answer = await ask(view_context, "aws", document=claimed, signature=signature)
            assert (status, answer["message"]) == (401, "Invalid AWS identity.")


async def test_missing_aws_certificates_reported() -> None:
    async with workspace_world(agent_fields={"instance_id": INSTANCE}) as view_context:
        document = aws_document()
        status, answer = await ask(view_context, "aws", document=document, signature=aws_signature(document))
        assert status == 401 and "--aws-identity-certificates" in answer["detail"]


# ---- Azure


async def test_azure_machine_gets_token(monkeypatch: pytest.MonkeyPatch) -> None:
    async with workspace_world(agent_fields={"instance_id": INSTANCE}) as view_context:
        with trusting(monkeypatch):
            for options in ((), (pkcs7.PKCS7Options.NoAttributes,)):
                message = base64.b64encode(attested(azure_signer(), INSTANCE, *options)).decode()
                result = await ask(view_context, "azure", signature=message, encoding="pkcs7")
                assert result == (200, {"session_token": await agents_token(view_context)})
            for invalid in (
                attested(azure_signer("metadata.azure.com.example.com")),
                attested(azure_signer("xmetadata.azure.com")),
                attested(azure_signer(by=OTHER_KEY)),
                attested(azure_signer(at="http://example.com/between.crt")),
                attested(azure_signer(at="http://www.microsoft.com/absent.crt")),
                attested(azure_signer(), 5),
                attested(azure_signer()).replace(INSTANCE.encode(), INSTANCE[::-1].encode()),
                (signed := attested(azure_signer()))[:-1] + bytes((signed[-1] ^ 1,)),
                b"",
            ):
                status, answer = await ask(
                    view_context, "azure", signature=base64.b64encode(invalid).decode(), encoding="pkcs7"
                )
                assert (status, answer["message"]) == (401, "Invalid Azure identity."), invalid
            assert (await ask(view_context, "azure", signature="%", encoding="pkcs7"))[0] == 401
            message = base64.b64encode(attested(azure_signer(), "another")).decode()
            assert (await ask(view_context, "azure", signature=message, encoding="pkcs7"))[0] == 404


def test_changed_message_is_rejected() -> None:
    signer = azure_signer()
    message = attested(signer)
    result = open_untrusted(message)
    assert json.loads(result.content)["vmId"] == INSTANCE
    assert result.signer == signer and result.others == ()
    for at in range(0, len(message), 7):
        changed = bytearray(message)
        changed[at] ^= 1
        try:
            opened = open_untrusted(bytes(changed))
        except MessageRefused:
            continue
        # Parts outside the signature may change: unused fields, the certificate's own signature.
        assert opened.content == result.content
        assert opened.signer.public_key() == signer.public_key()


def test_system_roots_exist() -> None:
    assert len(instance_identity.roots()) > 10
