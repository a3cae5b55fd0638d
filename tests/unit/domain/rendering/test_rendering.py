"""Recorded templates rendered without Terraform give the recorded parameters, presets, tags and build values."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coder.base.json_types import as_object
from coder.domain.rendering.builds import GivenValues, build_values
from coder.domain.rendering.module_scope import RenderRequest
from coder.domain.rendering.parameters import render
from coder.domain.rendering.presets import check_parameters, check_presets, render_presets
from coder.domain.rendering.workspace_tags import render_tags
from coder.domain.templates import parameter_rules as rules
from tests.kit.paths import DATA

RECORDED = DATA / "terraform" / "parameters"
_RECORDINGS = {"inputs.json", "expected.json", "websocket.json"}
CASES = [load["name"] for load in json.loads((RECORDED / "index.json").read_text())]


def template_of(case: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(case)): path.read_bytes()
        for path in case.rglob("*")
        if path.is_file() and path.name not in _RECORDINGS
    }


@pytest.mark.parametrize("name", CASES)
def test_recorded(name: str) -> None:
    case = RECORDED / name
    files, inputs = template_of(case), json.loads((case / "inputs.json").read_text())
    want = json.loads((case / "expected.json").read_text())
    numbers = itertools.count(1)

    def request(entry: dict[str, Any]) -> RenderRequest:
        return RenderRequest(
            entry.get("inputs", {}),
            entry.get("owner", inputs["owner"]),
            entry.get("variables", {}),
            lambda: f"<uuid:{next(numbers)}>",
        )

    for entry, expected in zip(inputs["renders"], want["renders"], strict=True):
        rendered = render(files, request(entry))
        assert rendered.response(0) == expected["response"], entry["name"]
        presets = render_presets(files, request(entry), rendered)
        assert presets == expected.get("presets", [])
        assert check_presets(presets) == expected.get("presets_check")
        tags, refusal = render_tags(rendered)
        assert tags == expected.get("workspace_tags", {})
        assert refusal == expected.get("workspace_tags_check")
    for entry, expected in zip(inputs.get("builds", []), want.get("builds", []), strict=True):
        given = GivenValues(
            entry.get("build", {}), entry.get("previous", {}), entry.get("preset", {}), entry.get("first_build", False)
        )
        values, refusal = build_values(files, request({}), given)
        got = {"name": entry["name"], "error": refusal} if refusal else {"name": entry["name"], "values": values}
        assert got == expected


_ONE = 'data "coder_parameter" "p" {\n  name    = "p"\n  default = %s\n}\n'


@pytest.mark.parametrize(
    "text",
    [
        _ONE % "local.a" + "locals {\n  a = local.b\n  b = local.a\n}\n",
        _ONE % "data.coder_parameter.p.value",
        _ONE % 'join("", [for i in range(1000) : join("", [for j in range(1000) : "x"])])',
        _ONE % "pow(10, 100000)",
        _ONE % "setproduct(range(1000), range(1000), range(1000))",
        _ONE % "1e4000 * 10",
        _ONE % "1 % 0",
        _ONE % "keys(null)",
        _ONE % "local.a0"
        + "locals {\n"
        + "".join(f'  a{i} = "${{local.a{i + 1}}}${{local.a{i + 1}}}"\n' for i in range(40))
        + '  a40 = "x"\n}\n',
    ],
)
def test_missing_value_is_no_failure(text: str) -> None:
    [parameter] = render({"main.tf": text.encode()}, RenderRequest()).parameters
    assert parameter["value"] == {"valid": False, "value": "data.coder_parameter.p.value"}


def test_fields_and_modules_are_limited() -> None:
    many = 'data "coder_parameter" "p" {\n  count = 1e9\n  name  = "p${count.index}"\n}\n'
    assert len(render({"main.tf": many.encode()}, RenderRequest()).parameters) == 1000
    itself = 'module "m" {\n  source = "./."\n}\n' + _ONE % '"x"'
    assert len(render({"main.tf": itself.encode()}, RenderRequest()).parameters) < 50


def test_odd_blocks_do_not_fail() -> None:
    text = (
        'data "coder_parameter" "p" {\n  name = "p"\n  order = "x"\n  type = null\n  styling = "[1]"\n'
        '  option {}\n  validation {\n    min = "x"\n    max = 1.5\n    regex = 5\n  }\n}\n'
        'data "coder_parameter" {}\ndata "coder_workspace_preset" "x" {}\nmodule {}\nvariable {}\n'
    )
    rendered = render({"main.tf": text.encode()}, RenderRequest())
    assert [parameter["name"] for parameter in rendered.parameters] == ["p"]
    render_presets({"main.tf": text.encode()}, RenderRequest(), rendered)


@given(st.text(alphabet='ab1 .,:?{}[]()"$%\\\n<-+*!&|=>', max_size=60))
def test_any_expression_renders(text: str) -> None:
    render({"main.tf": (_ONE % text).encode()}, RenderRequest({"x": "1"}))


def test_a_template_in_json() -> None:
    """Parameters, their dependencies, tags and files of values, in JSON syntax."""
    option = [{"name": "Linz", "value": "linz"}, {"name": "Graz", "value": "graz"}]
    source = {
        "variable": {"kind": {"type": "string", "default": "${plain}"}},
        "data": {
            "coder_parameter": {
                "city": {"name": "city", "default": "linz", "option": option},
                "street": {
                    "count": '${data.coder_parameter.city.value == "graz" ? 1 : 0}',
                    "name": "street",
                    "default": "in ${upper(data.coder_parameter.city.value)}",
                },
            },
            "coder_workspace_tags": {
                "t": {"tags": {"city": "${data.coder_parameter.city.value}", "kind": "${var.kind}"}},
            },
        },
    }
    files = {
        "main.tf.json": json.dumps(source).encode(),
        "terraform.tfvars.json": b'{"kind": "of ${values}"}',
        "broken.tf.json": b"{",
    }
    rendered = render(files, RenderRequest({"city": "graz"}, {}, {}, lambda: "id"))
    results = {parameter["name"]: parameter for parameter in rendered.parameters}
    assert [item["name"] for item in results["city"]["options"]] == ["Linz", "Graz"]
    assert results["street"]["value"]["value"] == "in GRAZ"
    assert render_tags(rendered)[0] == {"city": "graz", "kind": "of ${values}"}
    assert "street" not in {
        parameter["name"] for parameter in render(files, RenderRequest({}, {}, {}, lambda: "id")).parameters
    }


def test_null_tag_is_dropped() -> None:
    text = """
    data "coder_parameter" "place" {
      name    = "place"
      default = "home"
    }
    data "coder_workspace_tags" "t" {
      tags = {
        never  = null
        quoted = "${null}"
        away   = data.coder_parameter.place.value == "away" ? "yes" : null
        word   = "null"
        (null) = "no name"
      }
    }
    """
    for location, tags in (("home", {"word": "null"}), ("away", {"away": "yes", "word": "null"})):
        rendered = render({"main.tf": text.encode()}, RenderRequest({"place": location}, {}, {}, lambda: "id"))
        assert render_tags(rendered) == (tags, None)


VARIABLES = """
variable "list"   { type = list(string)
                    default = [1, true, "x"] }
variable "set"    { type = set(string)
                    default = ["b", "a", "b"] }
variable "map"    { type = map(string)
                    default = { x = 1, y = true } }
variable "tuple"  { type = tuple([string, number])
                    default = [1, "2"] }
variable "object" {
  type = object({
    a = number, b = optional(string), c = optional(bool, true), d = optional(object({ e = optional(string, "E") }), {})
  })
  default = { a = "5", dropped = 1 }
}
variable "whole"  { nullable = false
                    default  = "default" }
variable "misfit" { type = object({ a = number })
                    default = { b = 1 } }
locals { given = [var.list, var.set, var.map, var.tuple, var.object, var.whole] }
data "coder_parameter" "all" {
  name    = "all"
  default = jsonencode(local.given)
}
data "coder_parameter" "misfit" {
  name    = "misfit"
  default = jsonencode(var.misfit)
}
module "m" {
  source = "./m"
  none   = null
}
"""
MODULE = """
variable "none"  { default = "default" }
variable "other" { default = "default" }
data "coder_parameter" "module" {
  name    = "module"
  default = "${coalesce(var.none, "null")} ${var.other}"
}
"""


def test_variables_have_declared_type() -> None:
    files = {"main.tf": VARIABLES.encode(), "terraform.tfvars": b"whole = null\n", "m/main.tf": MODULE.encode()}
    values = {parameter["name"]: parameter["value"] for parameter in render(files, RenderRequest()).parameters}
    assert json.loads(values["all"]["value"]) == [
        ["1", "true", "x"],
        ["a", "b"],
        {"x": "1", "y": "true"},
        ["1", 2],
        {"a": 5, "b": None, "c": True, "d": {"e": "E"}},
        "default",
    ]
    assert not values["misfit"]["valid"]
    assert values["module"]["value"] == "null default"


MODULES = """
data "coder_parameter" "ide" {
  name    = "ide"
  default = "a"
}
data "coder_workspace" "me" {}
module "a" {
  count  = data.coder_parameter.ide.value == "a" ? 1 : 0
  source = "./m"
  name   = "a"
}
module "always" {
  count  = data.coder_workspace.me.start_count
  source = "./m"
  name   = "started"
}
module "each" {
  for_each = { x = "ex", y = "ey" }
  source   = "./m"
  name     = "${each.key}-${each.value}"
}
data "coder_parameter" "out" {
  name    = "out"
  default = "${join(",", module.a[*].value)}|${module.each["x"].value}|${join(",", [for k, m in module.each : k])}"
}
data "coder_workspace_tags" "tags" {
  tags = merge({ base = 1 }, { for k, m in module.each : k => m.value })
}
"""


def test_modules_are_expanded() -> None:
    module = b'variable "name" {}\ndata "coder_parameter" "p" {\n  name    = var.name\n  default = "v-${var.name}"\n}\n'
    files = {
        "main.tf": MODULES.encode(),
        "m/main.tf": module + b'output "value" {\n  value = data.coder_parameter.p.value\n}\n',
    }
    rendered = render(files, RenderRequest())
    values = {parameter["name"]: parameter["value"]["value"] for parameter in rendered.parameters}
    assert rendered.diagnostics == []
    assert set(values) == {"ide", "a", "started", "x-ex", "y-ey", "out"}
    assert values["out"] == "v-a|v-x-ex|x,y"
    assert render_tags(rendered) == ({"base": "1", "x": "v-x-ex", "y": "v-y-ey"}, None)
    without = render(files, RenderRequest(inputs={"ide": "b", "x-ex": "given"}))
    assert {parameter["name"]: parameter["value"]["value"] for parameter in without.parameters}["out"] == "|given|x,y"


def test_modules_within_modules_end() -> None:
    text = b'module "m" {\n  count  = 1000\n  source = "./"\n}\ndata "coder_parameter" "p" {\n  name = "p"\n}\n'
    assert len(render({"main.tf": text}, RenderRequest()).parameters) < 2000


_STATIC = "".join(f'  option {{\n    name = "{n}"\n    value = "{n}"\n  }}\n' for n in range(rules.MAX_OPTIONS + 1))
_DYNAMIC = """  dynamic "option" {
    for_each = [for n in concat(RANGES): tostring(n)]
    content {
      name  = option.value
      value = option.value
    }
  }
"""


@pytest.mark.parametrize("options", [_STATIC, _DYNAMIC], ids=["static", "dynamic"])
def test_too_many_options_are_refused(options: str) -> None:
    """Before the import: it would fail at its end."""
    ranges = ", ".join(f"range({start}, {start + 1000})" for start in range(0, 5000, 1000))
    blocks = options.replace("RANGES", ranges)
    text = f'data "coder_parameter" "many" {{\n  name = "many"\n  default = "1"\n{blocks}}}\n'
    owner = {"name": "x", "email": "", "full_name": "", "groups": [], "ssh_public_key": "", "id": "", "roles": []}
    rendered = render({"main.tf": text.encode()}, RenderRequest({}, owner, {}, lambda: "id"))
    count = rules.MAX_OPTIONS + 1 if options is _STATIC else 5000
    detail = f"A parameter has at most {rules.MAX_OPTIONS} options, and this one has {count}."
    refusal = check_parameters(rendered)
    assert refusal is not None
    assert as_object(refusal["response"])["validations"] == [{"field": "many", "detail": detail}]
    (parameter,) = rendered.parameters
    assert [problem["detail"] for problem in parameter["diagnostics"]] == [detail]


def test_few_options_are_accepted() -> None:
    text = 'data "coder_parameter" "few" {\n  name = "few"\n  option {\n    name = "a"\n    value = "a"\n  }\n}\n'
    rendered = render({"main.tf": text.encode()}, RenderRequest({}, {}, {}, lambda: "id"))
    assert check_parameters(rendered) is None
