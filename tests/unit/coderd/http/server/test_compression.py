"""Compressed JSON: which routes may declare it, and which requests get it."""

from __future__ import annotations

import gzip
import re
import typing
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from coder.coderd.http.server.compression import LEAST, CompressedSend, accepts
from coder.coderd.http.server.declarations import Content, Route, route_of
from coder.domain.access.route_scopes import Unscoped
from tests.kit.api.api_description import application

CREDENTIAL = re.compile(
    r"(?:^|_)(?:tokens?|secrets?|passwords?|keys?|credentials?|private|passcode|csrf|cookie|values?|environment)(?:$|_)"
)
HARMLESS = {
    "ProvisionerDaemon.key_id": "id of a key, not the key",
    "ProvisionerDaemon.key_name": "name of a key, not the key",
    "AuthMethods.password": "whether passwords are a login type",
    "WorkspaceAgent.environment_variables": "hidden from others; no other origin causes the request",
    "WorkspaceAgentMetadataDescription.key": "name of an item",
    "WorkspaceAgentMetadataResult.value": "output that is shown on the page",
    "WorkspaceResourceMetadata.key": "name of an item",
    "WorkspaceResourceMetadata.value": "hidden where Terraform marks it sensitive",
}
"""Fields that only look like credentials, or cannot be used by an attacker, with the reason."""
MACHINES = (Unscoped.AGENT, Unscoped.PROVISIONER, Unscoped.PROXY)


def routes() -> dict[str, Route]:
    """Return all declared routes by rule and method."""
    app = application()
    pairs = ((rule, route_of(app.view_functions[rule.endpoint])) for rule in app.url_map.iter_rules())
    return {f"{route.methods} {rule.rule}": route for rule, route in pairs if route is not None}


def fields(kind: Any, seen: set[Any]) -> Iterator[str]:
    """Return `Type.field` of a type and the types in it."""
    for part in typing.get_args(kind) or (kind if isinstance(kind, tuple) else ()):
        yield from fields(part, seen)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in seen:
        seen.add(kind)
        hints = typing.get_type_hints(kind)
        for info in msgspec.structs.fields(kind):
            yield f"{kind.__name__}.{info.encode_name}"
            yield from fields(hints[info.name], seen)


def credentials(route: Route) -> set[str]:
    names = fields(route.answers, set())
    return {name for name in names if CREDENTIAL.search(name.partition(".")[2])} - set(HARMLESS)


def test_compressed_routes_have_no_credentials() -> None:
    compressed = {name: route for name, route in routes().items() if route.compressed}
    assert len(compressed) > 30
    for name, route in compressed.items():
        assert route.methods == ("GET",), name
        assert route.scope not in MACHINES, name
        assert not isinstance(route.answers, Content), name
        assert credentials(route) == set(), name


def test_credential_fields_are_recognized() -> None:
    found = {name for route in routes().values() for name in credentials(route)}
    assert {"CryptoKey.secret", "ExternalAgentCredentials.agent_token", "WorkspaceBuildParameter.value"} <= found
    assert {"AgentGitSSHKey.private_key", "AgentAuth.access_token", "LoginWithPasswordResponse.session_token"} <= found


def test_long_lists_are_compressed() -> None:
    """Lists that grow with the deployment: each is compressed, or has parameters or secrets."""
    plain = {
        name
        for name, route in routes().items()
        if route.methods == ("GET",)
        and not route.compressed
        and re.search(r"/(?:workspaces|templates|users|members|groups|audit|connectionlog|builds|versions)'?$", name)
    }
    prefix = "('GET',) /api/v2"
    assert plain == {f"{prefix}/insights/templates", f"{prefix}/organizations/<organization>/settings/idpsync/groups"}


@pytest.mark.parametrize(
    ("accepted", "result"),
    [
        ("gzip", True),
        ("gzip, deflate, br", True),
        ("GZIP;q=0.5", True),
        ("*", True),
        ("gzip;q=0, *", False),
        ("br;q=1.0, gzip; q=0.000", False),
        ("identity", False),
        ("", False),
    ],
)
def test_accept_encoding_is_read(accepted: str, result: bool) -> None:
    assert accepts(accepted, "gzip") is result


TEXT = b'{"a":"' + b"b" * 2 * LEAST + b'"}'
TOKEN = b'{"a":"' + b"b" * 2 * LEAST + b' abcdefghij-abcdefghijklmnopqrstuv"}'
BROWSER = ((b"accept-encoding", b"gzip, br"), (b"cookie", b"coder_session_token=x"))
OWN = (*BROWSER, (b"sec-fetch-site", b"same-origin"))


@pytest.mark.parametrize(
    ("headers", "declared", "secure", "body", "status", "coded"),
    [
        (OWN, True, True, TEXT, 200, True),
        (OWN, True, True, TEXT * 100, 200, True),
        (OWN, False, True, TEXT, 200, False),
        (OWN, True, True, TOKEN, 200, False),
        (OWN, True, True, TEXT[-LEAST + 1 :], 200, False),
        (OWN, True, True, TEXT, 400, False),
        ((*BROWSER, (b"sec-fetch-site", b"same-site")), True, True, TEXT, 200, False),
        ((*BROWSER, (b"sec-fetch-site", b"cross-site")), True, False, TEXT, 200, False),
        (BROWSER, True, True, TEXT, 200, False),
        (BROWSER, True, False, TEXT, 200, True),
        (((b"accept-encoding", b"gzip"), (b"coder-session-token", b"x")), True, True, TEXT, 200, True),
        (((b"sec-fetch-site", b"same-origin"),), True, True, TEXT, 200, False),
    ],
)
async def test_response_is_compressed(
    headers: Any, declared: bool, secure: bool, body: bytes, status: int, coded: bool
) -> None:
    sent = list[dict[str, Any]]()

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    given = [(b"content-type", b"application/json; charset=utf-8"), (b"content-length", b"%d" % len(body))]
    compressed = CompressedSend({"headers": headers, "coder_compressed": declared}, send, secure=secure)
    await compressed({"type": "http.response.start", "status": status, "headers": given})
    await compressed({"type": "http.response.body", "body": body[:7], "more_body": True})
    await compressed({"type": "http.response.body", "body": body[7:], "more_body": False})
    start, *rest = sent
    answer = dict(start["headers"])
    received = b"".join(message["body"] for message in rest)
    assert (answer.get(b"content-encoding") == b"gzip") is coded
    assert (gzip.decompress(received) if coded else received) == body
    assert int(answer[b"content-length"]) == len(received)
    assert (b"vary" in answer) is (declared and status == 200 and len(body) >= LEAST)
