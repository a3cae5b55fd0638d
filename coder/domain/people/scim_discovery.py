"""SCIM documents about the service itself: resource types and schemas (RFC 7643 sections 6 and 7, RFC 7644 section 4).

They describe the attributes that the server reads or returns, no others. Groups are not a resource: group membership
comes from the claims of a login.
"""

from __future__ import annotations

from collections.abc import Sequence

from coder.base.json_types import Json
from coder.domain.people.scim_documents import USER_SCHEMA

LIST_SCHEMA = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
_RESOURCE_TYPE = "urn:ietf:params:scim:schemas:core:2.0:ResourceType"
_SCHEMA = "urn:ietf:params:scim:schemas:core:2.0:Schema"


def listed(documents: Sequence[Json], *, total: int | None = None, start: int = 1) -> dict[str, Json]:
    """Return a ListResponse; `start` is the 1-based index of the first document."""
    return {
        "schemas": [LIST_SCHEMA],
        "totalResults": len(documents) if total is None else total,
        "startIndex": start,
        "itemsPerPage": len(documents),
        "Resources": list(documents),
    }


def resource_types(url: str) -> dict[str, dict[str, Json]]:
    """Return the resource types by id; `url` is the deployment's address."""
    return {
        "User": {
            "schemas": [_RESOURCE_TYPE],
            "id": "User",
            "name": "User",
            "description": "User account",
            "endpoint": "/Users",
            "schema": USER_SCHEMA,
            "schemaExtensions": [],
            "meta": {"resourceType": "ResourceType", "location": f"{url}/scim/v2/ResourceTypes/User"},
        }
    }


def schemas(url: str) -> dict[str, dict[str, Json]]:
    """Return the schemas by id."""
    return {
        USER_SCHEMA: {
            "schemas": [_SCHEMA],
            "id": USER_SCHEMA,
            "name": "User",
            "description": "User account",
            "attributes": _USER_ATTRIBUTES,
            "meta": {"resourceType": "Schema", "location": f"{url}/scim/v2/Schemas/{USER_SCHEMA}"},
        }
    }


def _attribute(name: str, kind: str, description: str, **more: Json) -> dict[str, Json]:
    usual: dict[str, Json] = {
        "name": name,
        "type": kind,
        "multiValued": False,
        "description": description,
        "required": False,
        "mutability": "immutable",
        "returned": "default",
        "uniqueness": "none",
    }
    if kind == "string":
        usual["caseExact"] = False
    return {**usual, **more}


_USER_ATTRIBUTES = [
    _attribute(
        "userName",
        "string",
        "Name of the user. The username is derived from the part before an @.",
        required=True,
        uniqueness="server",
    ),
    _attribute(
        "name",
        "complex",
        "Parts of the user's full name.",
        subAttributes=[
            _attribute("givenName", "string", "Given name."),
            _attribute("familyName", "string", "Family name."),
        ],
    ),
    _attribute("displayName", "string", "Full name.", mutability="readOnly"),
    _attribute(
        "emails",
        "complex",
        "Email addresses; the primary one, or the first, identifies the user.",
        multiValued=True,
        required=True,
        subAttributes=[
            _attribute("value", "string", "Email address.", uniqueness="server"),
            _attribute("type", "string", "Label of the address.", canonicalValues=["work", "home", "other"]),
            _attribute("primary", "boolean", "Whether this is the primary address."),
        ],
    ),
    _attribute("active", "boolean", "Whether the user may log in; false suspends the user.", mutability="readWrite"),
]
