"""YAML of users: scalars keep their text in every file that a user writes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coder.base.config import Inputs
from coder.base.json_types import as_object
from coder.base.yaml_documents import YamlError, read_document
from coder.cli.core.parsing import parse
from coder.cli.declarations.templates.push import PUSH
from coder.cli.server.server import _yaml
from coder.cli.templates.template_variables import variable_values
from coder.cli.workspaces.parameters import values_of_file
from coder.coderd.config.reading import server_config
from coder.coderd.config.settings import struct_value
from coder.coderd.services.templates.sandbox_worker import _secrets
from coder.domain.rendering.sources import ParsedFiles

ROOT = Path(__file__).parents[3]
SCALARS = [
    "1.10",
    "3.10",
    "yes",
    "no",
    "on",
    "off",
    "y",
    "True",
    "FALSE",
    "12:30:45",
    "010",
    "0o17",
    "0x1F",
    "0b101",
    "1_000",
    "1e3",
    "1.5e+300",
    ".5",
    ".inf",
    "-.INF",
    ".nan",
    "+7",
    "-0",
    "00501234567",
    "12345678901234567890123",
    "0.12345678901234567890123",
    "2024-01-01",
    "2024-01-01T12:30:45Z",
    "2024-1-1",
    "=",
    "nil",
    "None",
    "a b",
]


def of_variables(path: Path) -> dict[str, str]:
    return variable_values(parse(PUSH, ["--variables-file", str(path)], {}), "-")


def of_settings(path: Path) -> dict[str, str]:
    """A text option of the server."""
    settings = {"introspection": {"prometheus": {}}, **_yaml(str(path))}
    value = _yaml(str(path))["v"]
    config = server_config(Inputs(file={**settings, "oidc": {"usernameField": value}}), Path("/nowhere"))
    return {"v": config.oidc_username_field}


def of_structured_option(path: Path) -> dict[str, str]:
    return {name: str(value) for name, value in as_object(struct_value(path.read_text())).items()}


def of_secrets(path: Path) -> dict[str, str]:
    pairs = _secrets(ParsedFiles({}), {"format": "yaml", "content": path.read_text()})
    assert isinstance(pairs, dict), pairs
    return dict(pairs)


READERS: list[Callable[[Path], dict[str, str]]] = [
    values_of_file,  # type: ignore[list-item] # subclass of str
    of_variables,
    of_settings,
    of_structured_option,
    of_secrets,
]


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
@pytest.mark.parametrize("written", ["{}", '"{}"', "'{}'", "!!str {}", "&anchor {}", "{} # comment"])
def test_scalars_keep_their_text(read: Callable[[Path], dict[str, str]], written: str, tmp_path: Path) -> None:
    path = tmp_path / "values.yaml"
    for scalar in SCALARS:
        path.write_text(f"v: {written.format(scalar)}\n")
        assert read(path) == {"v": scalar}


def test_no_other_module_parses_yaml() -> None:
    """A new reader of YAML belongs to the list above."""
    parsers = re.compile(r"yaml\.(safe_load|load|full_load|unsafe_load|compose|parse)")
    found = {path for path in (ROOT / "coder").rglob("*.py") if parsers.search(path.read_text())}
    assert found == {ROOT / "coder/base/yaml_documents.py"}


@pytest.mark.parametrize("null", ["~", "null", "Null", "NULL", ""])
def test_null_is_none(null: str) -> None:
    assert read_document(f"a: {null}\nb: [{null or '~'}]\nc: '{null}'\n") == {"a": None, "b": [None], "c": null}


@pytest.mark.parametrize(
    ("document", "value"),
    [
        ("", None),
        ("# nothing", None),
        ("--- []", []),
        ("010: x\nyes: y", {"010": "x", "yes": "y"}),
        ("a: &a {x: 1}\nb: {<<: *a, y: 2}", {"a": {"x": "1"}, "b": {"x": "1", "y": "2"}}),
        ("a: {x: 1}\n'<<': {y: 2}", {"a": {"x": "1"}, "<<": {"y": "2"}}),
        ("a: |\n  01\n  02\n", {"a": "01\n02\n"}),
        ("\ufeffa: 1", {"a": "1"}),
    ],
)
def test_documents(document: str, value: Any) -> None:
    assert read_document(document) == value


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("a: 1\nb: 2\na: 3", "the key a occurs twice (line 3)"),
        ("a: [", "the text is not YAML (line 1)"),
        ("a: b: c", "the text is not YAML (line 1)"),
        ("&a [*a]", "refers to itself"),
        ("? [a]\n: b", "only texts can be keys"),
        ("<<: 1", "only mappings can be merged"),
        ("[" * 600, "nested deeper than 500"),
        ("--- a\n--- b", "the text is not YAML"),
        ("a: \x01", "the text is not YAML"),
    ],
)
def test_unreadable_documents(document: str, reason: str) -> None:
    with pytest.raises(YamlError, match=re.escape(reason)):
        read_document(document)


def test_aliases_are_bounded() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(YamlError, match="too large"):
        read_document("\n".join(lines))


def test_imported_json_secrets_keep_digits() -> None:
    content = json.dumps({"PIN": "0", "FLAG": True}).replace('"0"', "1.10")
    assert _secrets(ParsedFiles({}), {"format": "json", "content": content}) == {"PIN": "1.10", "FLAG": "true"}
