"""Details of refused bodies: each kind of wrong value has the sentence of Go's decoder."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec
import pytest

from coder.api.base.refusals import BAD_BODY, Invalid
from coder.coderd.http.server.json import parse_body


class Parameter(msgspec.Struct):
    name: str
    value: str | None = None


class CreateThing(msgspec.Struct):
    email: str
    lifetime: int
    active: bool
    ids: list[UUID]
    deadline: datetime | None = None
    parameters: list[Parameter] = []
    labels: dict[str, str] = {}
    kind: Literal["", "a", "b"] = ""


FIELD = "json: cannot unmarshal {} into Go struct field {} of type {}"
FAULTS = [
    ('{"email": 5}', FIELD.format("number", "CreateThing.email", "string")),
    ('{"email": {}}', FIELD.format("object", "CreateThing.email", "string")),
    ('{"email": []}', FIELD.format("array", "CreateThing.email", "string")),
    ('{"EMAIL": true}', FIELD.format("bool", "CreateThing.email", "string")),
    ('{"lifetime": "1h"}', FIELD.format("string", "CreateThing.lifetime", "int64")),
    ('{"lifetime": 1.5}', FIELD.format("number 1.5", "CreateThing.lifetime", "int64")),
    ('{"lifetime": 1e3}', FIELD.format("number 1e3", "CreateThing.lifetime", "int64")),
    ('{"lifetime": 1.0}', FIELD.format("number 1.0", "CreateThing.lifetime", "int64")),
    ('{"email": 9999999999999999999}', FIELD.format("number", "CreateThing.email", "string")),
    (
        '{"lifetime": 9999999999999999999}',
        FIELD.format("number 9999999999999999999", "CreateThing.lifetime", "int64"),
    ),
    ('{"active": "yes"}', FIELD.format("string", "CreateThing.active", "bool")),
    ('{"ids": {}}', FIELD.format("object", "CreateThing.ids", "[]uuid.UUID")),
    ('{"ids": [1]}', FIELD.format("number", "CreateThing.ids", "uuid.UUID")),
    ('{"ids": ["x"]}', "invalid UUID length: 1"),
    ('{"deadline": "soon"}', 'parsing time "soon" as "2006-01-02T15:04:05Z07:00": cannot parse "soon" as "2006"'),
    ('{"deadline": 5}', "Time.UnmarshalJSON: input is not a JSON string"),
    ('{"parameters": "x"}', FIELD.format("string", "CreateThing.parameters", "[]codersdk.Parameter")),
    ('{"parameters": [5]}', FIELD.format("number", "CreateThing.parameters", "codersdk.Parameter")),
    ('{"parameters": [{"name": 5}]}', FIELD.format("number", "Parameter.parameters.name", "string")),
    ('{"labels": []}', FIELD.format("array", "CreateThing.labels", "map[string]string")),
    ('{"labels": {"a": "x", "b": 5}}', FIELD.format("number", "CreateThing.labels", "string")),
    ('{"deadline": ""}', 'parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006"'),
    ('{"deadline": "2026-13-01T00:00:00Z"}', 'parsing time "2026-13-01T00:00:00Z": month out of range'),
    ('{"deadline": "2026-02-30T00:00:00Z"}', 'parsing time "2026-02-30T00:00:00Z": day out of range'),
    ('{"deadline": "2026-01-01T24:00:00Z"}', 'parsing time "2026-01-01T24:00:00Z": hour out of range'),
    ('{"kind": 5}', FIELD.format("number", "CreateThing.kind", "string")),
    ("[]", "json: cannot unmarshal array into Go value of type codersdk.CreateThing"),
    ('"x"', "json: cannot unmarshal string into Go value of type codersdk.CreateThing"),
    ("5", "json: cannot unmarshal number into Go value of type codersdk.CreateThing"),
    ("nojson", "invalid character 'o' in literal null (expecting 'u')"),
    ('{"email":"a@b.c",}', "invalid character '}' looking for beginning of object key string"),
    ('{"email":', "unexpected EOF"),
    ("", "EOF"),
]


@pytest.mark.parametrize(("body", "detail"), FAULTS)
def test_fault_has_the_recorded_words(body: str, detail: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse_body(body.encode(), CreateThing)
    assert (refused.value.message, refused.value.detail) == (BAD_BODY, detail)


def test_null_items_are_zero() -> None:
    """As Go reads them: null leaves an item of a list or map as it was made."""
    body = parse_body(
        b'{"email": "a", "ids": [null], "parameters": [null, {"name": null}], "labels": {"a": null}}', CreateThing
    )
    assert (body.ids, body.labels) == ([UUID(int=0)], {"a": ""})
    assert body.parameters == [Parameter(""), Parameter("")]
