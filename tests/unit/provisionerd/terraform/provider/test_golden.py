"""The provider with a real terraform gives the recorded results for every recorded template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coder.provisionerd.terraform.provider import serving
from tests.kit.provisioners import terraform_recordings as kit

_DROPPED = ("timestamp", "relevant_attributes", "checks", "configuration")


@pytest.mark.parametrize("name", kit.cases("golden"))
async def test_golden(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = kit.DATA / "golden" / name
    kit.copy_template(case, tmp_path)
    want = kit.load(case / "diagnostics.json") if (case / "diagnostics.json").exists() else {}
    documents: dict[str, Any] = {}
    async with serving.serve_provider() as provider:
        bench = kit.Workbench(tmp_path, provider)
        kit.record_diagnostics(monkeypatch, bench.sent)
        failed = await _round(bench, kit.load(case / "env.json"), "", want, documents)
        if not failed and (case / "env-2.json").exists():
            await _round(bench, kit.load(case / "env-2.json"), "-2", want, documents)
        if (case / "env-destroy.json").exists():
            env = kit.load(case / "env-destroy.json")
            await bench.run("plan", "-destroy", "-input=false", "-json", "-out=destroy.out", env=env)
            documents["plan-destroy"] = await bench.show("destroy.out")
    names = kit.Placeholders(kit.inputs_of(case))
    for document in documents.values():
        for key in _DROPPED:
            document.pop(key, None)
    names.learn_tokens(*documents.values())
    names.learn(*documents.values())
    for document, got in documents.items():
        if (case / f"{document}.json").exists():
            assert names.apply(got) == kit.load(case / f"{document}.json"), document


async def _round(
    bench: kit.Workbench, env: dict[str, str], suffix: str, want: dict[str, Any], documents: dict[str, Any]
) -> bool:
    """Run validate (first round only), plan, apply; return True when one failed."""
    if not suffix and "validate" in want:
        await _stage(bench, ("validate", "-json"), env, want["validate"])
    plan = ("plan", "-input=false", "-json", f"-out=plan{suffix}.out")
    failed = await _stage(bench, plan, env, want.get(f"plan{suffix}", []))
    if failed:
        return True
    documents[f"plan{suffix}"] = await bench.show(f"plan{suffix}.out")
    apply = ("apply", "-auto-approve", "-input=false", "-json", f"plan{suffix}.out")
    failed = await _stage(bench, apply, env, want.get(f"apply{suffix}", []))
    documents[f"state{suffix}"] = await bench.show()
    return failed


async def _stage(bench: kit.Workbench, command: tuple[str, ...], env: dict[str, str], want: list[Any]) -> bool:
    bench.sent.clear()
    done = await bench.run(*command, env=env)
    assert kit.comparable(kit.spoken(done.stdout)) == kit.comparable(want), done.stderr.decode()
    assert bench.sent == kit.recorded_paths(want)
    return done.returncode != 0


async def test_schema_matches_recording(tmp_path: Path) -> None:
    (tmp_path / "main.tf").write_text(
        'terraform {\n  required_providers {\n    coder = { source = "coder/coder" }\n  }\n}\n'
    )
    async with serving.serve_provider() as provider:
        bench = kit.Workbench(tmp_path, provider)
        done = await bench.run("providers", "schema", "-json", env={})
    assert _without_descriptions(json.loads(done.stdout)) == _without_descriptions(
        kit.load(kit.DATA / "provider-schema.json")
    )


def _without_descriptions(value: Any) -> Any:
    if isinstance(value, dict):
        dropped = {"description", "description_kind"}
        return {key: _without_descriptions(item) for key, item in value.items() if key not in dropped}
    return value
