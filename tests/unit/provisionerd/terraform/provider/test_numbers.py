"""Numbers of every resource and data source: Terraform sends those that float64 cannot hold exactly as text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from coder.provisionerd.terraform.provider import behaviour, catalog
from coder.provisionerd.terraform.provider.schema import NUMBER, Block, Body
from coder.provisionerd.terraform.provider.values import Value, ValueObject


def numbers(body: Body, keys: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, entry in body.items():
        if isinstance(entry, Block):
            yield from numbers(entry.body, (*keys, name, "0"))
        elif entry.type == NUMBER:
            yield (*keys, name)


def configured(keys: tuple[str, ...], value: Value) -> ValueObject:
    result = value
    for key in reversed(keys):
        result = [result] if key == "0" else {key: result}
    assert isinstance(result, dict)
    return result


SCHEMAS = {name: kind.schema.body for name, kind in catalog.RESOURCES.items()}
SCHEMAS |= {name: kind.schema.body for name, kind in catalog.DATA_SOURCES.items()}
EVERY = [(name, keys) for name, body in SCHEMAS.items() for keys in numbers(body)]
REFUSED: list[tuple[Value, str]] = [
    ("0.1", "must be a whole number, got 0.1"),
    ("1.23456789", "must be a whole number, got 1.23456789"),
    (1.5, "must be a whole number, got 1.5"),
    ("100000000000000000000000000000000", "must be a number of 64 bits, got 1e+32"),
    (2.0**63, "must be a number of 64 bits, got 9.223372036854776e+18"),
]


@pytest.mark.parametrize(("name", "keys"), EVERY, ids=[f"{name}.{'.'.join(keys)}" for name, keys in EVERY])
def test_every_number_refuses_fractions(name: str, keys: tuple[str, ...]) -> None:
    body = SCHEMAS[name]
    for value, sentence in REFUSED:
        found = [problem.summary for problem in behaviour.validate(body, configured(keys, value))]
        assert f"{'.'.join(keys)}: {sentence}" in found
    assert not any("must be a" in problem.summary for problem in behaviour.validate(body, configured(keys, 5)))


def test_schemas_have_numbers() -> None:
    assert len(EVERY) > 12
