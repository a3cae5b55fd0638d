"""Conversion of a plan or a state, and its graph, to the stored content of a template version or a workspace.

The steps and their order follow reference behaviour recorded in tests/data/terraform/extraction, errors included.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from coder.provisionerd.terraform.extract import agents as agents_of
from coder.provisionerd.terraform.extract import parameters as parameters_of
from coder.provisionerd.terraform.extract.document import (
    Block,
    ExtractError,
    ExtractWarning,
    JsonObject,
    ResourceInstance,
    by_address,
    resources_of_plan,
    resources_of_state,
)
from coder.provisionerd.terraform.extract.graph import Graph, nearest, parse_graph
from coder.provisionerd.terraform.extract.state_file import resources_of_state_file
from coder.rpc.proto import provisioner_pb2 as pb

_NOT_LISTED = frozenset({"coder_script", "coder_agent", "coder_agent_instance", "coder_app", "coder_metadata"})
"""Types that are parts of other resources and not listed themselves."""

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
    warnings: list[ExtractWarning] = field(default_factory=list)


def extract_plan(plan: JsonObject, dot: str, new_id: Callable[[], str] = lambda: str(uuid.uuid4())) -> Extracted:
    """Extract the content of a plan. Raises ExtractError."""
    return _extract(resources_of_plan(plan), parse_graph(dot), new_id)


def extract_state(state: JsonObject, dot: str, new_id: Callable[[], str] = lambda: str(uuid.uuid4())) -> Extracted:
    """Extract the content of a state. Raises ExtractError."""
    return _extract(resources_of_state(state), parse_graph(dot), new_id)


def extract_state_file(data: bytes, dot: str, new_id: Callable[[], str] = lambda: str(uuid.uuid4())) -> Extracted:
    """Extract the content of a terraform.tfstate. Raises ExtractError."""
    return _extract(resources_of_state_file(data), parse_graph(dot), new_id)


def _extract(resources: list[ResourceInstance], graph: Graph, new_id: Callable[[], str]) -> Extracted:
    result = Extracted(pb.GraphComplete())
    try:
        _fill(result, resources, graph, new_id)
    except ExtractError as error:
        error.warnings = result.warnings
        raise
    return result


def _fill(result: Extracted, resources: list[ResourceInstance], graph: Graph, new_id: Callable[[], str]) -> None:
    complete = result.complete

    def warn(message: str, fields: dict[str, str]) -> None:
        result.warnings.append(ExtractWarning(message, fields))

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


def _targets(resources: list[ResourceInstance]) -> frozenset[str]:
    """Return the labels of resources that an agent can run on and metadata can describe."""
    return frozenset(
        resource.label
        for resource in resources
        if resource.mode == "managed"
        and (not resource.type.startswith("coder_") or resource.type == "coder_external_agent")
    )


def _is_external_agent(label: str) -> bool:
    return label.startswith("coder_external_agent.") or ".coder_external_agent." in label


def _collect_metadata(
    resources: list[ResourceInstance], graph: Graph, is_target: Callable[[str], bool]
) -> dict[str, ResourceInstance]:
    """Return coder_metadata by the label of the nearest resource it depends on. `resource_id` is ignored.

    Raises ExtractError when two belong to one resource.
    """
    targets: dict[str, ResourceInstance] = {}
    for resource in by_address(resources, "coder_metadata"):
        node = graph.node(resource.label)
        target = None if node is None else nearest(graph, node, graph.needs, is_target)
        if target is None:
            continue
        if target in targets:
            raise ExtractError(f"duplicate metadata resource: {target}", resource.address)
        targets[target] = resource
    return targets


def _listed(
    resources: list[ResourceInstance], agents: agents_of.Agents, metadata: dict[str, ResourceInstance]
) -> list[pb.Resource]:
    listed: list[pb.Resource] = []
    managed = (resource for resource in resources if resource.mode == "managed" and resource.type not in _NOT_LISTED)
    for resource in sorted(managed, key=lambda resource: resource.address):
        own_agents = agents.by_resource.get(resource.label, [])
        agents_of.set_instance_ids(resource, own_agents)
        resource_metadata = metadata.get(resource.label)
        entry = pb.Resource(
            name=resource.name,
            type=resource.type,
            agents=own_agents,
            instance_type=resource.text(_INSTANCE_TYPE_ATTRIBUTE.get(resource.type, "")),
            module_path=resource.module,
        )
        if resource_metadata is not None:
            entry.hide = resource_metadata.flag("hide")
            entry.icon = resource_metadata.text("icon")
            entry.daily_cost = resource_metadata.number("daily_cost")
            entry.metadata.extend(_metadata_item(item) for item in resource_metadata.blocks("item"))
        listed.append(entry)
    return listed


def _metadata_item(item: Block) -> pb.Resource.Metadata:
    return pb.Resource.Metadata(
        key=item.text("key"),
        value=item.text("value"),
        sensitive=item.flag("sensitive"),
        is_null=item.flag("is_null"),
    )


def _ai_tasks(resources: list[ResourceInstance]) -> list[pb.AITask]:
    tasks: list[pb.AITask] = []
    for resource in (
        resource for resource in resources if resource.mode == "managed" and resource.type == "coder_ai_task"
    ):
        sidebar = resource.blocks("sidebar_app")
        app_id = resource.text("app_id") or (sidebar[0].text("id") if sidebar else "")
        tasks.append(pb.AITask(id=resource.text("id"), app_id=app_id, sidebar_app=pb.AITaskSidebarApp(id=app_id)))
    return tasks
