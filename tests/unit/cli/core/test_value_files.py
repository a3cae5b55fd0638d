"""Files of values: null, lists, maps and the types of variables and parameters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coder.base.errors import CoderError
from coder.cli.core.parsing import parse
from coder.cli.declarations.templates.push import PUSH
from coder.cli.templates.template_variables import directory_values, variable_values
from coder.cli.workspaces.parameters import bool_text, values_of_file


def variables(text: str, tmp_path: Path, *flags: str) -> dict[str, str]:
    path = tmp_path / "values.yaml"
    path.write_text(text)
    invocation = parse(PUSH, ["--variables-file", str(path), *flags], {})
    return variable_values(invocation, str(tmp_path))


COLLECTIONS = "l: [1.10, no, 'x', ~]\nm: {a: 010, b: [12:30:45], 3.10: yes}\ne: []\nf: {}\n"
COLLECTIONS_AS_JSON = {
    "l": ["1.10", "no", "x", None],
    "m": {"a": "010", "b": ["12:30:45"], "3.10": "yes"},
    "e": [],
    "f": {},
}


def test_collections_become_json(tmp_path: Path) -> None:
    of_variables = variables(COLLECTIONS, tmp_path)
    assert {name: json.loads(text) for name, text in of_variables.items()} == COLLECTIONS_AS_JSON
    of_parameters = values_of_file(tmp_path / "values.yaml")
    assert {name: json.loads(text) for name, text in of_parameters.items()} == COLLECTIONS_AS_JSON


@pytest.mark.parametrize("text", ["a: ~\nb: 1\n", "a:\nb: 1\n", "a: null\nb: 1\n"])
def test_null_leaves_variable_its_default(text: str, tmp_path: Path) -> None:
    (tmp_path / "terraform.tfvars").write_text('a = "from the directory"\n')
    assert variables(text, tmp_path) == {"b": "1"}
    assert variables(text, tmp_path, "--variable", "a=flag") == {"a": "flag", "b": "1"}


@pytest.mark.parametrize("text", ["a: ~\nb: 1\nc:\n", "a: null\nc: Null\n"])
def test_null_parameter_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "values.yaml"
    path.write_text(text)
    with pytest.raises(CoderError, match='has no value for "a", "c"'):
        values_of_file(path)


def test_empty_text_is_a_value(tmp_path: Path) -> None:
    path = tmp_path / "values.yaml"
    path.write_text("a: \"\"\nb: ''\n")
    assert values_of_file(path) == {"a": "", "b": ""}


@pytest.mark.parametrize("text", ["- a\n", "text\n"])
def test_other_documents_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "values.yaml"
    path.write_text(text)
    with pytest.raises(CoderError, match="must have one `name: value` per line"):
        values_of_file(path)


def test_error_has_line(tmp_path: Path) -> None:
    path = tmp_path / "values.yaml"
    path.write_text("a: 1\nb: [\n")
    with pytest.raises(CoderError, match=r"cannot read parameters from .*: the text is not YAML \(line 3\)"):
        values_of_file(path)


def test_variables_of_terraform_files(tmp_path: Path) -> None:
    (tmp_path / "terraform.tfvars").write_text(
        'null = null\nlater = "x"\nflag = true\nn = 8\ns = "1.10"\nl = ["a", null, "$${HOME}", "C:\\\\bin"]\n'
    )
    (tmp_path / "x.auto.tfvars.json").write_text(
        '{"later": null, "version": 1.10, "big": 12345678901234567890.5, "l2": [1.10, "é", "${x}"], "off": false}'
    )
    assert directory_values(tmp_path) == {
        "flag": "true",
        "n": "8",
        "s": "1.10",
        "l": r'["a",null,"$${HOME}","C:\\bin"]',
        "version": "1.10",
        "big": "12345678901234567890.5",
        "l2": '[1.10,"é","$${x}"]',
        "off": "false",
    }


@pytest.mark.parametrize(
    ("written", "value"),
    [("yes", "true"), ("On", "true"), ("TRUE", "true"), ("no", "false"), ("off", "false"), ("1", "1"), ("x", "x")],
)
def test_bool_words(written: str, value: str) -> None:
    assert bool_text(written) == value
