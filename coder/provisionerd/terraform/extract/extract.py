"""From a plan or a state, and its graph, to what the server stores about a template version or a workspace.

The steps and their order follow reference behaviour recorded in tests/data/terraform/extraction, errors included.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from coder.provisionerd.terraform.extract import agents as agents_of
from coder.provisionerd.terraform.extract import parameters as parameters_of
from coder.provisionerd.terraform.extract.document import (
    ExtractError,
    Found,
    Json,
    Remark,
    by_address,
    resources_of_plan,
    resources_of_state,
)
from coder.provisionerd.terraform.extract.graph import Graph, nearest, parse_graph
from coder.provisionerd.terraform.extract.state_file import resources_of_state_file
from coder.rpc.proto import provisioner_pb2 as pb

_FOLDED = frozenset({"coder_script", "coder_agent", "coder_agent_instance", "coder_app", "coder_metadata"})
"""Types that are parts of other things and not listed themselves."""

_INSTANCE_TYPE_ATTRIBUTE = {
    "google_compute_instance": "machine_type",
    "aws_instance": "instance_type",
    "aws_spot_instance_request": "instance_type",
    "azurerm_linux_virtual_machine": "size",
    "azurerm_windows_virtual_machine": "size",
}


@dataclass(slots=True)
class Extracted:
    complete: pb.GraphComplete
    warnings: list[Remark] = field(default_factory=list)


def extract_plan(plan: Json, dot: str, new_id: Callable[[], str] = lambda: str(uuid.uuid4())) -> Extracted:
    """What a plan promises. Raises ExtractError."""
    return _extract(resources_of_plan(plan), parse_graph(dot), new_id)


def extract_state(state: Json, dot: str, new_id: Callable[[], str] = lambda: str(uuid.uuid4())) -> Extracted:
    """What a state holds. Raises ExtractError."""
    return _extract(resources_of_state(state), parse_graph(dot), new_id)


def extract_state_file(data: bytes, dot: str, new_id: Callable[[], str] = lambda: str(uuid.uuid4())) -> Extracted:
    """What a terraform.tfstate holds. Raises ExtractError."""
    return _extract(resources_of_state_file(data), parse_graph(dot), new_id)


def _extract(resources: list[Found], graph: Graph, new_id: Callable[[], str]) -> Extracted:
    result = Extracted(pb.GraphComplete())
    try:
        _fill(result, resources, graph, new_id)
    except ExtractError as problem:
        problem.warnings = result.warnings
        raise
    return result


def _fill(result: Extracted, resources: list[Found], graph: Graph, new_id: Callable[[], str]) -> None:
    complete = result.complete

    def warn(message: str, fields: dict[str, str]) -> None:
        result.warnings.append(Remark(message, fields))

    targets = _targets(resources)
    agents = agents_of.collect_agents(resources, graph, targets.__contains__)
    agents_of.attach_devcontainers(resources, graph, agents)
    agents_of.attach_apps(resources, graph, agents, new_id, warn)
    agents_of.attach_scripts_and_envs(resources, graph, agents)
    metadata = _collect_metadata(resources, graph, targets.__contains__)
    complete.resources.extend(_listed(resources, agents, metadata))
    complete.parameters.extend(parameters_of.collect_parameters(resources))
    complete.presets.extend(parameters_of.collect_presets(resources, complete.parameters, warn))
    complete.external_auth_providers.extend(parameters_of.collect_external_auth(resources))
    complete.ai_tasks.extend(_ai_tasks(resources))
    complete.has_ai_tasks = bool(complete.ai_tasks)
    complete.has_external_agents = graph.has_label(_is_external_agent)


def _targets(resources: list[Found]) -> frozenset[str]:
    """Labels of resources that an agent can run on and metadata can be about."""
    return frozenset(
        one.label
        for one in resources
        if one.mode == "managed" and (not one.type.startswith("coder_") or one.type == "coder_external_agent")
    )


def _is_external_agent(label: str) -> bool:
    return label.startswith("coder_external_agent.") or ".coder_external_agent." in label


def _collect_metadata(resources: list[Found], graph: Graph, is_target: Callable[[str], bool]) -> dict[str, Found]:
    """coder_metadata by the label of the nearest resource it depends on. `resource_id` is not looked at.

    Raises ExtractError when two fall on one resource.
    """
    targets: dict[str, Found] = {}
    for resource in by_address(resources, "coder_metadata"):
        node = graph.node(resource.label)
        target = None if node is None else nearest(graph, node, graph.needs, is_target)
        if target is None:
            continue
        if target in targets:
            raise ExtractError(f"duplicate metadata resource: {target}", resource.address)
        targets[target] = resource
    return targets


def _listed(resources: list[Found], agents: agents_of.Agents, metadata: dict[str, Found]) -> list[pb.Resource]:
    listed: list[pb.Resource] = []
    managed = (one for one in resources if one.mode == "managed" and one.type not in _FOLDED)
    for resource in sorted(managed, key=lambda one: one.address):
        own = agents.by_resource.get(resource.label, [])
        agents_of.give_instance_ids(resource, own)
        about = metadata.get(resource.label)
        entry = pb.Resource(
            name=resource.name,
            type=resource.type,
            agents=own,
            instance_type=resource.text(_INSTANCE_TYPE_ATTRIBUTE.get(resource.type, "")),
            module_path=resource.module,
        )
        if about is not None:
            entry.hide = about.flag("hide")
            entry.icon = about.text("icon")
            entry.daily_cost = about.number("daily_cost")
            entry.metadata.extend(_metadata_item(item) for item in about.blocks("item"))
        listed.append(entry)
    return listed


def _metadata_item(item: Json) -> pb.Resource.Metadata:
    return pb.Resource.Metadata(
        key=item.get("key") or "",
        value=item.get("value") or "",
        sensitive=bool(item.get("sensitive")),
        is_null=bool(item.get("is_null")),
    )


def _ai_tasks(resources: list[Found]) -> list[pb.AITask]:
    tasks: list[pb.AITask] = []
    for resource in (one for one in resources if one.mode == "managed" and one.type == "coder_ai_task"):
        sidebar = resource.blocks("sidebar_app")
        app_id = resource.text("app_id") or (sidebar[0].get("id") or "" if sidebar else "")
        tasks.append(pb.AITask(id=resource.text("id"), app_id=app_id, sidebar_app=pb.AITaskSidebarApp(id=app_id)))
    return tasks
