"""Command that prints the extracted content of a plan, a state or a template's files, behind scripts/explain-template.

The output has the form of the recorded expectations in tests/data/terraform: protojson with proto field names, empty
fields written out, absent messages as null.
"""

from __future__ import annotations

import argparse
import json
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from coder.base.errors import CoderError, explain_error
from coder.base.json_types import Json, JsonObject, as_list, as_object, as_text
from coder.domain.rendering.builds import GivenValues, build_values
from coder.domain.rendering.module_scope import RenderRequest
from coder.domain.rendering.parameters import render
from coder.domain.rendering.presets import check_presets, render_presets
from coder.domain.rendering.workspace_tags import render_tags
from coder.provisionerd.terraform import template as template_of
from coder.provisionerd.terraform.extract import changes
from coder.provisionerd.terraform.extract.document import ExtractError
from coder.provisionerd.terraform.extract.extract import Extracted, extract_plan, extract_state
from coder.rpc.proto import provisioner_pb2 as pb


def explain_plan(plan: JsonObject, dot: str) -> JsonObject:
    """Return the `plan` part of an expectation."""
    complete = pb.PlanComplete(
        dailyCost=changes.daily_cost(plan),
        ai_task_count=changes.ai_task_count(plan),
        resource_replacements=changes.resource_replacements(plan),
    )
    document_fields = dump(complete)
    kept = {name: document_fields[name] for name in ("dailyCost", "ai_task_count", "resource_replacements")}
    result: JsonObject = {"plan_complete": kept, **_extracted(extract_plan, plan, dot)}
    log = [{"level": "WARN", "output": line} for line in changes.replacement_log(plan)]
    if log:
        result["replacement_log"] = log
    return result


def explain_state(state: JsonObject, dot: str) -> JsonObject:
    """Return the `state` part of an expectation."""
    return _extracted(extract_state, state, dot)


def _extracted(extract: Callable[[JsonObject, str], Extracted], document: JsonObject, dot: str) -> JsonObject:
    result: JsonObject = {}
    try:
        extracted = extract(document, dot)
        result["graph_complete"], warnings = dump(extracted.complete), extracted.warnings
    except ExtractError as error:
        result["error"], warnings = error.message, error.warnings
    if warnings:
        result["log"] = [{"level": "WARN", "message": warning.message, **warning.fields} for warning in warnings]
    return result


def explain_files(folder: Path) -> JsonObject:
    """Return the `parse_complete` part of an expectation."""
    template = template_of.read_template(folder)
    return {
        "parse_complete": {
            "template_variables": [dump(warning) for warning in template_of.variables(template)],
            "workspace_tags": template_of.workspace_tags(template),
        }
    }


def explain_parameters(folder: Path, spec: JsonObject) -> JsonObject:
    """Return the expectation of dynamic parameters for the requests in `inputs` (inputs.json)."""
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in _RECORDINGS
    }
    result: JsonObject = {"renders": [_render(files, spec, entry) for entry in _objects(spec.get("renders"))]}
    if spec.get("builds"):
        result["builds"] = [_build_values(files, spec, entry) for entry in _objects(spec["builds"])]
    return result


_RECORDINGS = frozenset({"inputs.json", "expected.json", "websocket.json"})


def _objects(value: Json) -> list[Mapping[str, Json]]:
    return [as_object(item) for item in as_list(value)]


def _texts(value: Json) -> dict[str, str]:
    return {name: as_text(text) for name, text in as_object(value).items()}


def _request(spec: Mapping[str, Json], entry: Mapping[str, Json]) -> RenderRequest:
    return RenderRequest(
        inputs=_texts(entry.get("inputs")),
        owner=as_object(entry.get("owner") or spec.get("owner")),
        variables=_texts(entry.get("variables")),
        new_id=lambda: str(uuid.uuid4()),
    )


def _render(files: dict[str, bytes], spec: Mapping[str, Json], entry: Mapping[str, Json]) -> JsonObject:
    request = _request(spec, entry)
    rendered = render(files, request)
    presets = render_presets(files, request, rendered)
    tags, tags_refusal = render_tags(rendered)
    document_fields: JsonObject = {
        "presets": cast("list[JsonObject]", presets),
        "presets_check": check_presets(presets),
        "workspace_tags": tags,
        "workspace_tags_check": tags_refusal,
    }
    return {
        "name": entry.get("name", ""),
        "response": rendered.response(0),
        **{name: value for name, value in document_fields.items() if value},
    }


def _build_values(files: dict[str, bytes], spec: Mapping[str, Json], entry: Mapping[str, Json]) -> JsonObject:
    options = GivenValues(
        build=_texts(entry.get("build")),
        previous=_texts(entry.get("previous")),
        preset=_texts(entry.get("preset")),
        first_build=bool(entry.get("first_build")),
    )
    values, refusal = build_values(files, _request(spec, {}), options)
    outcome: JsonObject = {"error": refusal} if refusal else {"values": values}
    return {"name": entry.get("name", ""), **outcome}


def dump(message: Message) -> JsonObject:
    """Return a message as protojson with empty fields written out and absent messages as null."""
    document_fields: JsonObject = MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    _add_nulls(message, document_fields)
    return document_fields


def _add_nulls(message: Message, document_fields: JsonObject) -> None:
    for field in message.DESCRIPTOR.fields:
        if field.type != FieldDescriptor.TYPE_MESSAGE:
            continue
        value = getattr(message, field.name)
        if field.is_repeated:
            if not isinstance(value, Mapping):
                for item, item_shown in zip(value, as_list(document_fields.get(field.name)), strict=True):
                    if isinstance(item_shown, dict):
                        _add_nulls(item, item_shown)
        elif not message.HasField(field.name):
            document_fields[field.name] = None
        elif isinstance(inner := document_fields.get(field.name), dict):
            _add_nulls(value, inner)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="explain-template", description="What the server makes of a template.")
    commands = parser.add_subparsers(dest="command", required=True)
    extract = commands.add_parser("extract", help="resources of a plan or a state")
    source = extract.add_mutually_exclusive_group(required=True)
    source.add_argument("--plan", type=Path, help="output of `terraform show -json PLANFILE`")
    source.add_argument("--state", type=Path, help="output of `terraform show -json`")
    extract.add_argument("--graph", type=Path, required=True, help="output of `terraform graph -type=plan`")
    parse = commands.add_parser("parse", help="variables and workspace tags, read without terraform")
    parse.add_argument("folder", type=Path)
    parameters = commands.add_parser("parameters", help="parameters, presets and tags, rendered without terraform")
    parameters.add_argument("folder", type=Path)
    parameters.add_argument("--inputs", type=Path, required=True, help="JSON: owner, renders, builds")
    options = parser.parse_args(arguments)
    try:
        result = _run(options)
    except (CoderError, OSError, ValueError) as error:
        sys.stderr.write(f"error: {explain_error(error)}\n")
        return 1
    sys.stdout.write(json.dumps(result, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    return 0


def _run(options: argparse.Namespace) -> dict[str, Json]:
    if options.command == "parse":
        return explain_files(options.folder)
    if options.command == "parameters":
        return explain_parameters(options.folder, json.loads(options.inputs.read_bytes()))
    dot = options.graph.read_text()
    if options.plan is not None:
        return explain_plan(json.loads(options.plan.read_bytes()), dot)
    return explain_state(json.loads(options.state.read_bytes()), dot)


if __name__ == "__main__":
    sys.exit(main())
