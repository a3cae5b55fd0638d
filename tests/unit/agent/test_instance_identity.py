"""Requests of an agent to its cloud, and the exchange of the result."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import h11
import pytest
import trio

from coder.agent import instance_identity
from coder.agent.agent import AgentRole
from coder.agent.config import AgentConfig
from coder.agent.instance_identity import DOCUMENTS, exchange
from coder.base.secret import Secret
from coder.net.errors import HttpError
from coder.net.policy import DialPolicy

METADATA: dict[tuple[str, str], tuple[str, str]] = {
    ("GET", "/computeMetadata/v1/instance/service-accounts/default/identity"): ("Metadata-Flavor: Google", "a.b.c\n"),
    ("PUT", "/latest/api/token"): ("X-aws-ec2-metadata-token-ttl-seconds: 300", "SESSION"),
    ("GET", "/latest/dynamic/instance-identity/signature"): ("X-aws-ec2-metadata-token: SESSION", "c2ln\nbmVk"),
    ("GET", "/latest/dynamic/instance-identity/document"): ("X-aws-ec2-metadata-token: SESSION", '{"instanceId": "i"}'),
    ("GET", "/metadata/attested/document"): ("Metadata: true", '{"signature": "c2ln", "encoding": "pkcs7"}'),
}
"""Request to a machine's metadata service, the header it requires, and its result."""

SENT = {
    "google-instance-identity": {"json_web_token": "a.b.c"},
    "aws-instance-identity": {"signature": "c2ln\nbmVk", "document": '{"instanceId": "i"}'},
    "azure-instance-identity": {"signature": "c2ln", "encoding": "pkcs7"},
}


class Services:
    """Metadata services of all clouds and a Coder server, at one address."""

    def __init__(self) -> None:
        self.url = ""
        self.posted: list[tuple[str, Any]] = []
        self.refusal = 0

    def answer(self, request: h11.Request, body: bytes) -> tuple[int, bytes]:
        method, target = request.method.decode(), request.target.decode()
        path = target.partition("?")[0]
        if method == "POST":
            self.posted.append((target, json.loads(body)))
            reply = {"message": "Invalid identity."} if self.refusal else {"session_token": f"token-{len(self.posted)}"}
            return self.refusal or 200, json.dumps(reply).encode()
        needed, text = METADATA[method, path]
        name, _, value = needed.partition(": ")
        fields = {key.decode().lower(): header.decode() for key, header in request.headers}
        return (200, text.encode()) if fields.get(name.lower()) == value else (403, b"")

    async def serve(self, stream: trio.SocketStream) -> None:
        connection = h11.Connection(h11.SERVER)
        body = b""
        request = None
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await stream.receive_some(65536))
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            else:
                break
        if request is None:
            return
        status, content = self.answer(request, body)
        head = h11.Response(
            status_code=status, headers=[("content-length", str(len(content))), ("connection", "close")]
        )
        for part in (head, h11.Data(data=content), h11.EndOfMessage()):
            await stream.send_all(connection.send(part) or b"")


@asynccontextmanager
async def services(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Services]:
    found = Services()
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, found.serve, 0)
        port = listeners[0].socket.getsockname()[1]
        found.url = f"http://127.0.0.1:{port}"
        monkeypatch.setattr(instance_identity, "LINK_LOCAL", found.url)
        monkeypatch.setenv("GCE_METADATA_HOST", f"127.0.0.1:{port}")
        # No proxy may be between a machine and its metadata.
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
        yield found
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("auth", DOCUMENTS)
async def test_document_is_exchanged(auth: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with services(monkeypatch) as found:
        policy = DialPolicy(found.url, token=Secret("old"), proxies={})
        assert (await exchange(policy, auth)).reveal() == "token-1"
        assert (await exchange(policy, auth, "second")).reveal() == "token-2"
        path = f"/api/v2/workspaceagents/{auth}"
        assert found.posted == [(path, SENT[auth]), (path, SENT[auth] | {"agent_name": "second"})]


async def test_rejection_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    async with services(monkeypatch) as found:
        found.refusal = 401
        with pytest.raises(HttpError) as caught:
            await exchange(DialPolicy(found.url, proxies={}), "azure-instance-identity")
        assert caught.value.status == 401


async def test_every_dial_exchanges_token(tmp_path: Path) -> None:
    """A build gives the agent of a cloud machine another token while the machine continues."""
    given = iter(("first", "second"))

    async def next_token() -> Secret:
        return Secret(next(given))

    policy = DialPolicy("http://127.0.0.1:1", proxies={})
    agent = AgentRole(AgentConfig(policy, Secret(""), tmp_path, tmp_path, "coder", exchange=next_token))
    for token in ("first", "second"):
        await agent.exchange_token()
        assert agent.state.token == token
        assert agent.config.token.reveal() == token
        assert agent.config.policy.request_headers() == [("Coder-Session-Token", token)]
