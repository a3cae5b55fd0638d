"""Templates that pin an old coder provider: they run, or fail with one sentence about the provider."""

from __future__ import annotations

from pathlib import Path

import pytest

from coder.provisionerd.terraform.provider_pin import allows, explain_pin
from coder.provisionerd.terraform.template import read_template
from coder.rpc.proto.provisionerd_pb2 import FailedJob
from tests.unit.provisionerd.executors.test_terraform import World, importing

OLD_PINS = [
    "~> 0.12",
    "~> 0.12.0",
    "0.23.0",
    "= 1.0.4",
    "~> 1.0",
    "< 2.0.0",
    ">= 0.12, < 2",
    ">= 0.9.0, != 2.0.0, < 2.0.0",
]
NEW_PINS = ["", "~> 2.0", ">= 0.12", ">= 1.0", "2.5.3", "~> 2.5.0", "~> 2", "> 1.9", "!= 1.0.0", "x", ">= 2.13.1"]
REMOVED = {
    "attribute": 'output "o" {\n  value = data.coder_workspace.me.owner_email\n}\n',
    "argument": 'resource "coder_agent" "a" {\n  os = "linux"\n  arch = "amd64"\n  login_before_ready = true\n}\n',
    "data source": 'data "coder_git_auth" "g" {\n  id = "github"\n}\n',
    "resource": 'resource "coder_gone" "g" {\n}\n',
    "block": 'data "coder_workspace" "you" {\n  gone {\n  }\n}\n',
}


def template(pin: str, body: str) -> str:
    version = f', version = "{pin}"' if pin else ""
    head = f'terraform {{\n  required_providers {{\n    coder = {{ source = "coder/coder"{version} }}\n  }}\n}}\n'
    return head + 'data "coder_workspace" "me" {}\n' + body


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize("kind", REMOVED)
async def test_removed_name_is_explained_once(world: World, kind: str) -> None:
    failed = await world.run(importing(template("~> 0.12", REMOVED[kind])))
    assert isinstance(failed, FailedJob)
    assert 'pins version "~> 0.12" of the coder provider' in failed.error
    output = [output for *_, output in world.server.lines()]
    assert sum("pins version" in line for line in output) == 1
    assert not [line for line in output if "Unsupported" in line or "Invalid" in line]
    assert [line for line in output if line.startswith("on main.tf line ")]


async def test_working_template_ignores_pin(world: World) -> None:
    done = await world.run(importing(template("~> 0.12", 'output "o" {\n  value = data.coder_workspace.me.name\n}\n')))
    assert done.template_import.start_resources is not None and not isinstance(done, FailedJob)


async def test_other_failure_keeps_its_text(world: World) -> None:
    failed = await world.run(importing(template("~> 0.12", 'output "o" {\n  value = file("gone")\n}\n')))
    assert isinstance(failed, FailedJob) and "pins version" not in failed.error
    assert not [output for *_, output in world.server.lines() if "pins version" in output]


async def test_new_pin_keeps_terraforms_words(world: World) -> None:
    failed = await world.run(importing(template("~> 2.5", REMOVED["attribute"])))
    assert isinstance(failed, FailedJob) and "pins version" not in failed.error
    assert [output for *_, output in world.server.lines() if "Unsupported attribute" in output]


@pytest.mark.parametrize(("pin", "is_old"), [*((pin, True) for pin in OLD_PINS), *((pin, False) for pin in NEW_PINS)])
def test_old_pins_are_recognized(tmp_path: Path, pin: str, is_old: bool) -> None:
    (tmp_path / "main.tf").write_text(template(pin, ""))
    assert bool(explain_pin(read_template(tmp_path))) is is_old


@pytest.mark.parametrize(
    ("constraint", "version", "expected"),
    [
        ("~> 1.2", (1, 9, 0), True),
        ("~> 1.2", (2, 0, 0), False),
        ("~> 1.2", (1, 1, 9), False),
        ("~> 1.2.3", (1, 2, 9), True),
        ("~> 1.2.3", (1, 3, 0), False),
        ("1", (1, 0, 0), True),
        ("v1.0.0", (1, 0, 0), True),
        (">1,<=1.5", (1, 5, 0), True),
        (">1,<=1.5", (1, 5, 1), False),
    ],
)
def test_constraints_as_terraform(constraint: str, version: tuple[int, int, int], expected: bool) -> None:
    assert allows(constraint, version) is expected
