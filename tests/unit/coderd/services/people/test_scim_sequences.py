"""Request sequences of Okta's SCIM 2.0 test suite, Entra ID's provisioning service and generic SCIM testers, as data.

Each row is a request and what the client checks of the answer; `{id}` is the id of the user that the sequence creates.
Sources: Okta "Build your SCIM API service" and its Runscope suite, Microsoft "Develop and plan provisioning for a SCIM
endpoint", RFC 7644.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from coder.base.secret import Secret
from tests.kit.server.server_in_process import running_coderd

KEY = "scim-key-of-the-provider"
USER = "urn:ietf:params:scim:schemas:core:2.0:User"
LIST = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
ERROR = "urn:ietf:params:scim:api:messages:2.0:Error"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"


@dataclass(frozen=True)
class Step:
    request: str
    body: Any = None
    status: int = 200
    has: dict[str, Any] = field(default_factory=dict)
    "Pointer into the answer -> value."
    bearer: str = "Bearer"


def user(address: str, **more: Any) -> dict[str, Any]:
    emails = [{"primary": True, "value": address, "type": "work"}]
    return {"schemas": [USER], "userName": address, "emails": emails, "active": True, **more}


def patch(*operations: dict[str, Any]) -> dict[str, Any]:
    return {"schemas": [PATCH], "Operations": list(operations)}


def found(count: int) -> dict[str, Any]:
    return {"/schemas/0": LIST, "/totalResults": count}


ADA = user("ada@example.com", externalId="e1", name={"givenName": "Ada", "familyName": "L"})
OKTA = [
    Step("GET /Users?count=1&startIndex=1", has={"/schemas/0": LIST, "/itemsPerPage": 1, "/startIndex": 1}),
    Step('GET /Users?filter=userName eq "ada@example.com"', has=found(0)),
    Step("POST /Users", ADA, has={"/userName": "ada", "/active": True}),
    Step("GET /Users/{id}", has={"/id": "{id}", "/emails/0/value": "ada@example.com", "/active": True}),
    Step('GET /Users?filter=userName eq "ADA@EXAMPLE.COM"', has=found(1)),
    Step("GET /Users/00u1abcdefg", status=404, has={"/schemas/0": ERROR, "/status": "404"}),
    Step("PUT /Users/{id}", {**ADA, "active": False}, has={"/active": False}),
    Step("PATCH /Users/{id}", patch({"op": "replace", "value": {"active": True}}), has={"/active": True}),
    Step("GET /Groups?startIndex=1&count=100", has=found(0)),
]
BOB = user("bob@example.com", externalId="0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef", meta={"resourceType": "User"})
ENTRA = [
    Step('GET /Users?filter=userName eq "no-user-7d0d"', has=found(0)),
    Step('GET /Users?filter=emails[type eq "work"].value eq "bob@example.com"', has=found(0)),
    Step("POST /Users", BOB, has={"/active": True}, bearer="bearer"),
    Step('GET /Users?filter=emails[type eq "work"].value eq "Bob@example.com"', has=found(1)),
    Step('GET /Users?filter=emails[type eq "work" and value eq "bob@example.com"]', has=found(1)),
    Step('GET /Users?filter=externalId eq "0a21f0f2"', has=found(0)),
    Step(f'GET /Users?filter={USER}:userName eq "bob@example.com" and active eq true', has=found(1)),
    Step("PATCH /Users/{id}", patch({"op": "Replace", "path": "active", "value": "False"}), has={"/active": False}),
    Step("PATCH /Users/{id}", patch({"op": "Add", "path": "active", "value": "True"}), has={"/active": True}),
    Step("PATCH /Users/{id}", patch({"op": "Replace", "value": {"active": "False"}}), has={"/active": False}),
    Step(
        "PATCH /Users/{id}",
        patch({"op": "Replace", "path": 'emails[type eq "work"].value', "value": "b@example.com"}),
        has={"/active": False},
    ),
    Step("PATCH /Users/{id}", patch({"op": "Replace", "path": "active", "value": "maybe"}), status=400),
    Step('GET /Groups?excludedAttributes=members&filter=displayName eq "devs"', has=found(0)),
    Step("DELETE /Users/{id}", status=204),
    Step("GET /Users/{id}", has={"/active": False}),
]
TESTER = [
    Step("GET /ServiceProviderConfig", has={"/patch/supported": True, "/bulk/supported": False}),
    Step("GET /ResourceTypes", has={"/schemas/0": LIST, "/Resources/0/id": "User"}),
    Step("GET /Schemas", has={"/schemas/0": LIST, "/Resources/0/id": USER}),
    Step(f"GET /Schemas/{USER}", has={"/id": USER}),
    Step("POST /Users", {"SCHEMAS": [USER], "USERNAME": "eve@example.com", "Emails": ADA["emails"]}, has={}),
    Step("GET /Users/{id}?attributes=userName", has={"": {"schemas", "id", "userName"}}),
    Step(f"GET /Users/{{id}}?attributes={USER}:name.givenName", has={"": {"schemas", "id", "name"}}),
    Step("GET /Users/{id}?attributes=emails.value", has={"/emails/0": {"value"}}),
    Step(
        "GET /Users/{id}?excludedAttributes=emails,groups,meta,name",
        has={"": {"schemas", "id", "userName", "displayName", "active"}},
    ),
    Step("GET /Users?attributes=id&count=1", has={"/Resources/0": {"schemas", "id"}}),
    Step("GET /Users?startIndex=0&count=-1", has={"/startIndex": 1, "/itemsPerPage": 0}),
    Step("GET /Users?startIndex=100", has={"/itemsPerPage": 0}),
    Step('GET /Users?filter=userName co "e"', status=400, has={"/scimType": "invalidFilter"}),
    Step("GET /Users?filter=userName eq", status=400, has={"/scimType": "invalidFilter"}),
    Step("PATCH /Users/{id}", patch({"op": "remove"}), status=400, has={"/schemas/0": ERROR}),
    Step("PUT /Users/{id}", user("other@example.com"), status=400, has={"/scimType": "mutability"}),
    Step("POST /Users", [], status=400, has={"/schemas/0": ERROR}),
]


def _at(pointer: str, document: Any) -> Any:
    for part in pointer.split("/")[1:]:
        document = document[int(part)] if isinstance(document, list) else document[part]
    return document


@pytest.mark.parametrize("steps", [OKTA, ENTRA, TESTER], ids=["okta", "entra", "tester"])
async def test_sequence(steps: list[Step]) -> None:
    ident = ""
    async with running_coderd(first_user=True, scim_auth_header=Secret(KEY)) as world:
        for step in steps:
            method, _, address = step.request.replace("{id}", ident).partition(" ")
            path, _, query = address.partition("?")
            headers = {
                "Authorization": f"{step.bearer} {KEY}",
                "Accept": "application/scim+json",
                "Content-Type": "application/scim+json",
            }
            content = None if step.body is None else json.dumps(step.body)
            parameters = dict(item.split("=", 1) for item in query.split("&")) if query else None
            answer = await world.client.request(
                method, f"/scim/v2{path}", content=content, params=parameters, headers=headers
            )
            assert answer.status_code == step.status, (step.request, answer.text)
            document = answer.json() if answer.content else {}
            ident = document.get("id", ident) if method == "POST" else ident
            for pointer, value in step.has.items():
                got = _at(pointer, document)
                expected = ident if value == "{id}" else value
                assert (set(got) if isinstance(value, set) else got) == expected, (step.request, pointer)
