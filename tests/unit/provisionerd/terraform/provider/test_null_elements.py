"""Null elements of maps, as upstream's provider 2.19 with a real terraform: they do not exist."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coder.provisionerd.terraform.provider import serving
from tests.kit.provisioners import terraform_recordings as kit

_HEAD = """
terraform {
  required_providers {
    coder = { source = "coder/coder" }
  }
}
"""
AGENT = 'resource "coder_agent" "a" {\n os = "linux"\n arch = "amd64"\n env = %s\n}\n'
TAGS = 'data "coder_workspace_tags" "t" {\n tags = %s\n}\n'
PRESET = 'data "coder_workspace_preset" "p" {\n name = "p"\n parameters = %s\n}\n'
ENV = {"CODER_AGENT_URL": "http://127.0.0.1"}
NO_CHANGE, CHANGE = 0, 2


async def _apply(bench: kit.Workbench, folder: Path, text: str) -> tuple[int, Any]:
    """Plan and apply. Return the exit code of the plan and the map in the state."""
    (folder / "main.tf").write_text(_HEAD + text)
    plan = await bench.run("plan", "-input=false", "-out=plan.out", "-detailed-exitcode", env=ENV)
    assert plan.returncode in {NO_CHANGE, CHANGE}, plan.stderr.decode()
    done = await bench.run("apply", "-input=false", "plan.out", env=ENV)
    assert done.returncode == 0, done.stderr.decode()
    (resource,) = (await bench.show())["values"]["root_module"]["resources"]
    values = resource["values"]
    return plan.returncode, next(values.get(name) for name in ("env", "tags", "parameters") if name in values)


@pytest.mark.parametrize(
    ("template", "steps"),
    [
        (TAGS, [('{a = null, b = "1"}', NO_CHANGE, {"b": "1"}), ('{a = "", b = null}', NO_CHANGE, {"a": ""})]),
        (TAGS, [("{a = null}", NO_CHANGE, None), ("{}", NO_CHANGE, None), ("null", NO_CHANGE, None)]),
        (PRESET, [('{a = null, b = "1"}', NO_CHANGE, {"b": "1"}), ("{a = null}", NO_CHANGE, None)]),
        (
            AGENT,
            [
                ('{A = null, B = "1"}', CHANGE, {"B": "1"}),
                ('{B = "1"}', NO_CHANGE, {"B": "1"}),
                ('{A = "2", B = "1"}', CHANGE, {"A": "2", "B": "1"}),
                ('{A = null, B = "1"}', CHANGE, {"B": "1"}),
                ("{A = null, B = null}", CHANGE, None),
                ("{}", NO_CHANGE, None),
                ("null", NO_CHANGE, None),
            ],
        ),
    ],
    ids=["tags", "no tags", "preset", "agent"],
)
async def test_null_elements_do_not_exist(template: str, steps: list[tuple[str, int, Any]], tmp_path: Path) -> None:
    async with serving.serve_provider() as provider:
        bench = kit.Workbench(tmp_path, provider)
        for written, code, stored in steps:
            assert await _apply(bench, tmp_path, template % written) == (code, stored), written


@pytest.mark.parametrize(
    ("stored", "written"), [({"A": None, "B": "1"}, '{A = null, B = "1"}'), ({"A": None}, "{A = null}"), ({}, "{}")]
)
async def test_former_state_is_no_change(stored: dict[str, Any], written: str, tmp_path: Path) -> None:
    """Former versions of this provider stored null elements; the agent must not be replaced."""
    async with serving.serve_provider() as provider:
        bench = kit.Workbench(tmp_path, provider)
        await _apply(bench, tmp_path, AGENT % written)
        path = tmp_path / "terraform.tfstate"
        state = json.loads(path.read_text())
        state["resources"][0]["instances"][0]["attributes"]["env"] = stored
        path.write_text(json.dumps(state))
        code, _ = await _apply(bench, tmp_path, AGENT % written)
        assert code == NO_CHANGE
