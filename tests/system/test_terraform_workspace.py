"""A workspace made by Terraform on the provisioner's own machine, through its whole life."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.kit.network.namespace_deployment import Deployment, open_deployment, wrapper
from tests.kit.network.network_namespaces import missing_tools

pytestmark = [pytest.mark.system, pytest.mark.skipif(bool(missing_tools()), reason=missing_tools() or "-")]


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    with open_deployment() as found:
        yield found


def agents(deployment: Deployment) -> list[str]:
    """Command lines of agents in the server's namespace."""
    done = deployment.world.run("srv", "sh", "-c", "ip netns pids $(ip netns identify) | xargs -r ps -o args= -p")
    return [line for line in done.stdout.decode().splitlines() if re.search(r"coder\S* agent$", line)]


def test_template_and_workspace_life_cycle(deployment: Deployment) -> None:
    folder = deployment.folder / "local-process"
    data = deployment.folder / "workspaces"
    deployment.coder("templates", "init", "--id", "local-process", str(folder), check=True)
    deployment.coder(
        "templates",
        "push",
        "local-process",
        "-d",
        str(folder),
        "-y",
        "--variable",
        f"coder_binary={wrapper(deployment)}",
        "--variable",
        f"data_dir={data}",
        check=True,
    )
    deployment.coder("create", "mine", "--template=local-process", "-y", check=True)
    assert deployment.coder("ssh", "mine", "echo here").stdout == b"here\n", deployment.log_ends()
    # What an agent starts is for a moment called as the agent is.
    deployment.wait(lambda: len(agents(deployment)) == 1, 60, "there is not one agent")
    deployment.coder("stop", "mine", "-y", check=True)
    assert agents(deployment) == []
    deployment.coder("start", "mine", "-y", check=True)
    assert deployment.coder("ssh", "mine", "echo again").stdout == b"again\n"
    deployment.coder("delete", "mine", "-y", check=True)
    assert agents(deployment) == []
    assert not data.exists() or list(data.iterdir()) == []
    assert [row["name"] for row in deployment.json("list", "-o", "json")] == ["hello-world"]
