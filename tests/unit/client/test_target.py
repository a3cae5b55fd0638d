"""Resolution of names to workspaces and agents."""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from coder.api.base.answers import read_answer
from coder.api.workspaces.workspaces import Workspace
from coder.base.errors import CoderError
from coder.client.target import choose_agent, split_target


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("dev", ("me", "dev", "")),
        ("dev.main", ("me", "dev", "main")),
        ("alice/dev", ("alice", "dev", "")),
        ("alice--dev.main", ("alice", "dev", "main")),
        ("alice~dev.main", ("alice", "dev", "main")),
    ],
)
def test_names(text: str, parts: tuple[str, str, str]) -> None:
    assert split_target(text) == parts


@pytest.mark.parametrize("text", ["", "/dev", "alice/", "a/b/c", ".main", "alice/.main"])
def test_invalid_names(text: str) -> None:
    with pytest.raises(CoderError, match="invalid workspace name"):
        split_target(text)


def workspace(*resources: list[str]) -> Workspace:
    """Create agents; a name like `name.parent` is of a dev container's agent."""
    some_id = str(UUID(int=1))
    agents = [
        [
            {"id": some_id, "name": name.partition(".")[0], "parent_id": some_id if "." in name else None}
            for name in names
        ]
        for names in resources
    ]
    build = {"id": some_id, "resources": [{"id": some_id, "agents": each} for each in agents]}
    return read_answer(json.dumps({"id": some_id, "name": "dev", "latest_build": build}).encode(), Workspace)


def test_only_agent_needs_no_name() -> None:
    assert choose_agent(workspace(["main"]), "").name == "main"
    assert choose_agent(workspace(["main"], ["gpu"]), "gpu").name == "gpu"


def test_dev_container_agents_require_name() -> None:
    family = workspace(["api.main", "main", "ui.main"])
    assert choose_agent(family, "").name == "main"
    assert choose_agent(family, "api").name == "api"
    with pytest.raises(CoderError, match="multiple agents found"):
        choose_agent(workspace(["main", "api.main"], ["gpu"]), "")


@pytest.mark.parametrize(
    ("resources", "name", "message"),
    [
        ([], "", '"dev" has no agents'),
        ([[]], "main", '"dev" has no agents'),
        ([["main"]], "gpu", 'agent not found by name "gpu", available agents: [main]'),
        ([["main"], ["gpu"]], "", "multiple agents found, please specify the agent name, available agents: [main gpu]"),
    ],
)
def test_error_lists_agents(resources: list[list[str]], name: str, message: str) -> None:
    with pytest.raises(CoderError) as refused:
        choose_agent(workspace(*resources), name)
    assert message in refused.value.message
