"""Recorded Terraform cases: where they are, how the same template runs here, how run-specific values are named.

`tests/data/terraform/README.md` says what the files of a case hold and how placeholders count.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import trio

from coder.provisionerd.terraform.provider import serving
from coder.provisionerd.terraform.provider.proto import tfplugin5_pb2 as wire
from coder.provisionerd.terraform.provider.provider import TerraformProvider

DATA = Path(__file__).parents[2] / "data" / "terraform"
TERRAFORM = shutil.which("terraform") or "terraform"
_NOT_TEMPLATE = {"env.json", "env-2.json", "env-destroy.json", "diagnostics.json", "expected.json", "expected-2.json"}
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)

Sent = tuple[str, int, str, str, tuple[str | int, ...]]
"(method, severity, summary, detail, path) as the provider sent it"


def load(path: Path) -> Any:
    return json.loads(path.read_text())


@dataclass
class Workbench:
    """One directory with a template, one provider served to the terraform processes run in it."""

    folder: Path
    provider: serving.ServedProvider
    sent: set[Sent] = field(default_factory=set)

    async def run(self, *arguments: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
        self.provider.environment = env
        full = {name: value for name, value in os.environ.items() if not name.startswith(("TF_", "CODER_"))}
        full |= {"TF_REATTACH_PROVIDERS": self.provider.reattach, "CHECKPOINT_DISABLE": "1", **env}
        command = [TERRAFORM, *arguments]
        return await trio.run_process(
            command, cwd=self.folder, env=full, capture_stdout=True, capture_stderr=True, check=False
        )

    async def show(self, *arguments: str) -> Any:
        done = await self.run("show", "-json", "-no-color", *arguments, env={})
        return json.loads(done.stdout)


def copy_template(case: Path, folder: Path) -> None:
    """The case's template files, without the recordings."""
    recorded = _NOT_TEMPLATE | {path.name for pattern in ("plan*.json", "state*.json") for path in case.glob(pattern)}
    shutil.copytree(case, folder, ignore=lambda _where, names: recorded & set(names), dirs_exist_ok=True)


_RESPONSES = {
    "ValidateResourceTypeConfig": wire.ValidateConfig,
    "ValidateDataSourceConfig": wire.ValidateConfig,
    "GetSchema": wire.GetProviderSchema,
}


def record_diagnostics(monkeypatch: Any, sent: set[Sent]) -> None:
    """Notes every diagnostic a provider sends, with its path, which Terraform's output leaves out."""
    original = TerraformProvider.call

    def call(self: TerraformProvider, method: str, body: bytes) -> bytes:
        answer = original(self, method, body)
        response_type = _RESPONSES.get(method) or getattr(wire, method)
        for one in getattr(cast("Any", response_type).Response.FromString(answer), "diagnostics", ()):
            path = tuple(step.attribute_name or step.element_key_int for step in one.attribute.steps)
            sent.add((method, one.severity, one.summary, one.detail, path))
        return answer

    monkeypatch.setattr(TerraformProvider, "call", call)


def spoken(output: bytes) -> list[dict[str, Any]]:
    """The diagnostics in terraform's -json output, of either form."""
    text = output.decode()
    if text.lstrip().startswith("{\n"):
        return list(json.loads(text)["diagnostics"])
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [line["diagnostic"] for line in lines if line.get("type") == "diagnostic"]


def comparable(diagnostics: list[dict[str, Any]]) -> set[str]:
    """Diagnostics without duplicates, order and what only decorates them."""
    kept = ("severity", "summary", "detail", "address", "range")
    return {json.dumps({key: one.get(key) or None for key in kept}, sort_keys=True) for one in diagnostics}


def recorded_paths(diagnostics: list[dict[str, Any]]) -> set[Sent]:
    severities = {"error": 1, "warning": 2}
    return {
        (one["rpc"], severities[one["severity"]], one["summary"], one["detail"], tuple(one["attribute_path"]))
        for one in diagnostics
        if one.get("rpc")
    }


@dataclass
class Placeholders:
    """Names for random values, counted by first appearance as the recordings count them."""

    inputs: str
    "All text given to terraform; UUIDs in it stay."
    names: dict[str, str] = field(default_factory=dict)

    def learn_tokens(self, *documents: Any) -> None:
        for document in documents:
            for token in _tokens(document):
                if token not in self.names and token.lower() not in self.inputs:
                    self.names[token] = f"<token:{sum(name.startswith('<token') for name in self.names.values()) + 1}>"

    def learn(self, *documents: Any) -> None:
        for document in documents:
            for text in _texts(document):
                for found in _UUID.findall(text):
                    if found not in self.names and found.lower() not in self.inputs:
                        count = sum(name.startswith("<uuid") for name in self.names.values()) + 1
                        self.names[found] = f"<uuid:{count}>"

    def apply(self, document: Any) -> Any:
        if isinstance(document, dict):
            return {key: self.apply(value) for key, value in document.items()}
        if isinstance(document, list):
            return [self.apply(value) for value in document]
        if isinstance(document, str):
            return _UUID.sub(lambda found: self.names.get(found.group(0), found.group(0)), document)
        return document


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key in sorted(value):
            yield from _texts(value[key])
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str):
        yield value


def _tokens(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if value.get("type") == "coder_agent":
            bodies = [value.get("values"), *(value.get("change", {}).get(side) for side in ("before", "after"))]
            for body in bodies:
                if isinstance(body, dict) and isinstance(body.get("token"), str):
                    yield body["token"]
        for key in sorted(value):
            yield from _tokens(value[key])
    elif isinstance(value, list):
        for item in value:
            yield from _tokens(item)


def cases(kind: str) -> list[str]:
    return [entry["name"] for entry in load(DATA / kind / "index.json")]


def inputs_of(case: Path) -> str:
    """Everything a case gives to terraform, lower case, to tell given UUIDs from made ones."""
    files = [*case.glob("**/*.tf"), *case.glob("*.tfvars"), *case.glob("env*.json")]
    return "\n".join(path.read_text().lower() for path in files)
