"""Proof of identity for an agent on a cloud machine: a document signed by the cloud, exchanged for the agent's token.

Each cloud answers at an address that only the machine itself reaches; no proxy may be used. Addresses and request
formats are the clouds' facts (instance metadata services of Amazon EC2, Google Compute Engine and Azure). The server's
request format: docs/protocol/agents.md#outside-the-rpc-connection.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable

from coder.base.json_types import JsonObject
from coder.base.secret import Secret
from coder.net.http1 import HttpClient, HttpResponse
from coder.net.policy import DialPolicy

LINK_LOCAL = "http://169.254.169.254"
_TIMEOUT = 10.0
_DOCUMENT = 1 << 20

Headers = tuple[tuple[str, str], ...]


async def exchange(policy: DialPolicy, auth: str, agent_name: str = "") -> Secret:
    """Return the agent's token for `auth` (google-, aws- or azure-instance-identity); a machine may have several
    agents.

    Raises HttpError and NetError, of the cloud's service or the server's.
    """
    body = await DOCUMENTS[auth]()
    if agent_name:
        body["agent_name"] = agent_name
    async with HttpClient(policy.with_token(None)) as client:
        answer = await client.request("POST", f"/api/v2/workspaceagents/{auth}", json=body, limit=_DOCUMENT)
    return Secret(str(answer.json(JsonObject)["session_token"]))


async def _ask(base: str, method: str, path: str, headers: Headers) -> HttpResponse:
    async with HttpClient(DialPolicy(base, proxies={})) as client:
        return await client.request(method, path, headers=headers, timeout=_TIMEOUT, limit=_DOCUMENT)


async def _google() -> JsonObject:
    host = os.environ.get("GCE_METADATA_HOST", "metadata.google.internal")
    path = "/computeMetadata/v1/instance/service-accounts/default/identity?audience=coder&format=full"
    document = await _ask(f"http://{host}", "GET", path, (("Metadata-Flavor", "Google"),))
    return {"json_web_token": document.body.decode("utf-8", "replace").strip()}


async def _aws() -> JsonObject:
    lifetime = (("X-aws-ec2-metadata-token-ttl-seconds", "300"),)
    session = await _ask(LINK_LOCAL, "PUT", "/latest/api/token", lifetime)
    headers = (("X-aws-ec2-metadata-token", session.body.decode("ascii", "replace").strip()),)
    document: JsonObject = {}
    for name in ("signature", "document"):
        answer = await _ask(LINK_LOCAL, "GET", f"/latest/dynamic/instance-identity/{name}", headers)
        document[name] = answer.body.decode("utf-8", "replace")
    return document


async def _azure() -> JsonObject:
    path = "/metadata/attested/document?api-version=2020-09-01"
    document = (await _ask(LINK_LOCAL, "GET", path, (("Metadata", "true"),))).json(JsonObject)
    return {"signature": document.get("signature", ""), "encoding": document.get("encoding", "")}


DOCUMENTS: dict[str, Callable[[], Awaitable[JsonObject]]] = {
    "google-instance-identity": _google,
    "aws-instance-identity": _aws,
    "azure-instance-identity": _azure,
}
"""Function per authentication method that returns the body of the request to the server."""
