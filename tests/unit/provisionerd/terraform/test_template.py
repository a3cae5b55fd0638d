"""Templates read without terraform."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToDict

from coder.provisionerd.terraform import template as reader
from coder.rpc.proto import provisioner_pb2 as pb
from tests.kit.provisioners import terraform_recordings as kit


@pytest.mark.parametrize("name", kit.cases("extraction"))
def test_parse(name: str) -> None:
    case = kit.DATA / "extraction" / name
    want = kit.load(case / "expected.json")["parse"]["parse_complete"]
    template = reader.read_template(case)
    got = [
        MessageToDict(one, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
        for one in reader.variables(template)
    ]
    assert got == want["template_variables"]
    assert reader.workspace_tags(template) == want["workspace_tags"]


_CODER = 'terraform {\n required_providers {\n coder = { source = "coder/coder" }\n }\n}\n'


def _template(tmp_path: Path, text: str) -> reader.ReadTemplate:
    (tmp_path / "main.tf").write_text(text)
    return reader.read_template(tmp_path)


def test_json_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "main.tf.json").write_text(
        '{"variable": {"zone": {"type": "string", "default": "a", "sensitive": true}},'
        ' "data": {"coder_workspace_tags": {"t": {"tags": {"zone": "${var.zone}", "kind": "box"}}}}}'
    )
    template = reader.read_template(tmp_path)
    [variable] = reader.variables(template)
    assert (variable.name, variable.type, variable.default_value, variable.sensitive) == ("zone", "string", "a", True)
    assert reader.workspace_tags(template) == {"zone": "(var.zone)", "kind": '"box"'}
    assert reader.needs_init(template)


def test_file_that_is_not_hcl(tmp_path: Path) -> None:
    with pytest.raises(reader.TemplateError, match=r"main\.tf:1,15: Invalid block definition"):
        _template(tmp_path, "not a template")


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        (_CODER + 'resource "coder_agent" "a" {}\nresource "terraform_data" "b" {}', False),
        ('resource "coder_agent" "a" {}', True),
        ('terraform {\n required_providers {\n coder = { source = "coder/coder", version = "~> 2" }\n }\n}', False),
        ('terraform {\n required_providers {\n coder = { source = "example.com/x/coder" }\n }\n}', True),
        ('terraform {\n required_providers {\n docker = { source = "kreuzwerker/docker" }\n }\n}', True),
        ('terraform {\n backend "http" {}\n}', True),
        ('resource "null_resource" "x" {}', True),
        ('resource "coder_agent" "x" {\n provider = other.one\n}', True),
        (_CODER + 'resource "coder_agent" "x" {\n provider = coder.one\n}', False),
        (_CODER + 'provider "coder" {}', False),
        (_CODER + 'provider "docker" {}', True),
        ('module "m" {\n source = "./m"\n}', True),
        ("locals {\n x = provider::foo::bar()\n}", True),
        ('ephemeral "random_password" "p" {}', True),
    ],
)
def test_needs_init(tmp_path: Path, text: str, needed: bool) -> None:
    assert reader.needs_init(_template(tmp_path, text)) is needed


def test_variables_file_keeps_meaning(tmp_path: Path) -> None:
    template = _template(
        tmp_path,
        'variable "a" {\n type = string\n}\nvariable "l" {\n type = list(string)\n}\nvariable "n" {\n type = number\n}',
    )
    values = [("a", 'say "${x}"\n%{y}\\ C:\\bin\\fun \b\x7f'), ("l", '["p", "q"]'), ("n", "3")]
    text = reader.variables_file(template, [pb.VariableValue(name=name, value=value) for name, value in values])
    assert text == 'a = "say \\"$${x}\\"\\n%%{y}\\\\ C:\\\\bin\\\\fun \\u0008\\u007f"\nl = ["p", "q"]\nn = "3"\n'


async def test_large_template_is_parsed_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A built-in daemon shares the event loop with the server: a megabyte would stop it for seconds."""
    threads = []
    read = reader.read_template

    def noted(folder: Path) -> reader.ReadTemplate:
        threads.append(threading.get_ident())
        return read(folder)

    monkeypatch.setattr(reader, "read_template", noted)
    (tmp_path / "main.tf").write_text("locals {\n  a = 1\n}\n")
    assert await reader.TemplateCache().read(b"key", tmp_path) == await reader.read_template_aside(tmp_path)
    assert len(threads) == 2
    assert threading.get_ident() not in threads


def test_folders_named_like_files(tmp_path: Path) -> None:
    """Terraform ignores a folder that is named like a template's file."""
    for name in ("main.tf", "more.tf.json"):
        (tmp_path / name).mkdir()
    (tmp_path / "real.tf").write_text('variable "a" {}\n')
    assert [variable.name for variable in reader.variables(reader.read_template(tmp_path))] == ["a"]
