"""What a devcontainer.json may say to us, in any shape, and the names its agent gets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from coder.agent.devcontainers.builder import Built, read_outcome_untrusted
from coder.agent.devcontainers.commands import CommandError, Said
from coder.agent.devcontainers.configuration import (
    DISPLAY_APPS,
    Configuration,
    agent_name,
    names_to_try,
    read_configuration_untrusted,
)
from coder.domain.agents.sub_agents import explain_name
from coder.rpc.proto import agent_pb2

App = agent_pb2.CreateSubAgentRequest.App


def _read(**said: Any) -> Configuration:
    return read_configuration_untrusted(json.dumps(said).encode())


def test_layers_of_a_merged_configuration_add_up() -> None:
    first = {"apps": [{"slug": "docs", "url": "http://a"}, {"slug": "web"}], "displayApps": {"vscode": False}}
    last = {
        "name": "inner", "autoStart": True, "displayApps": {"vscode_insiders": True, "none": True, "ssh_helper": 1},
        "apps": [{
            "slug": "docs", "displayName": "Docs", "url": "http://b", "share": "organization", "openIn": "tab",
            "order": 3, "hidden": True, "healthCheck": {"url": "http://b/h", "interval": 5, "threshold": 2},
        }],
    }  # fmt: skip
    merged = {"remoteUser": "dev", "customizations": {"coder": [first, last]}}
    found = _read(configuration={}, mergedConfiguration=merged, workspace={"workspaceFolder": "/workspaces/x"})
    assert (found.name, found.auto_start, found.ignore) == ("inner", True, False)
    assert (found.remote_user, found.workspace_folder) == ("dev", "/workspaces/x")
    assert found.display_apps == ("vscode_insiders", "web_terminal", "ssh_helper", "port_forwarding_helper")
    docs, web = found.apps
    check = App.Healthcheck(url="http://b/h", interval=5, threshold=2)
    wanted = App(slug="docs", display_name="Docs", url="http://b", hidden=True, order=3, healthcheck=check)
    wanted.share, wanted.open_in = App.ORGANIZATION, App.TAB
    assert (docs, web) == (wanted, App(slug="web"))


def test_the_description_alone_is_enough() -> None:
    found = _read(configuration={"customizations": {"coder": {"ignore": True}}, "containerUser": "root"})
    assert (found.ignore, found.remote_user) == (True, "root")
    assert found.display_apps == tuple(name for name, shown in DISPLAY_APPS.items() if shown)


ODD: list[Any] = [
    [], 7, None, "x",
    {"customizations": []}, {"customizations": {"coder": 7}}, {"customizations": {"coder": [None, 7]}},
    {"customizations": {"coder": {"apps": {"a": 1}, "displayApps": [], "name": 7, "ignore": "yes"}}},
    {"customizations": {"coder": {"apps": [7, {"slug": 7, "order": 2**40, "share": [], "healthCheck": "x"}]}}},
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_what_has_another_shape_is_as_if_it_were_not_there(odd: Any) -> None:
    found = _read(configuration=odd)
    assert (found.name, found.ignore, found.remote_user) == ("", False, "")
    assert all(app == App(slug="") for app in found.apps)


@pytest.mark.parametrize("answer", [b"", b"[]", b"7", b"{", b"[" * 9999])
def test_an_answer_that_is_none_is_one_sentence(answer: bytes) -> None:
    with pytest.raises(CommandError, match="could not be read"):
        read_configuration_untrusted(answer)


OUTCOMES = {
    b'{"outcome":"error","message":"m","description":"no such image"}\n': "devcontainer up failed: no such image",
    b"": "devcontainer up failed: last words",
    b"nothing\n7\n": "devcontainer up failed: last words",
    b'{"outcome":"success"}': "devcontainer up failed: last words",
}


@pytest.mark.parametrize("output", OUTCOMES)
def test_a_build_that_failed_says_why(output: bytes) -> None:
    with pytest.raises(CommandError) as caught:
        read_outcome_untrusted(Said(1, output, "words\nlast words"))
    assert str(caught.value) == OUTCOMES[output]


def test_the_last_line_says_what_was_built() -> None:
    line = b'noise\n{"outcome":"success","containerId":"c1","remoteUser":"dev","remoteWorkspaceFolder":7}\n'
    assert read_outcome_untrusted(Said(0, line, "")) == Built("c1", "dev", "")


@pytest.mark.parametrize(
    "folder", ["/work/My Project", "/work/ümlaut.dev/", "/", "/work/" + "x" * 300, "/a/---", "C:\\x"]
)
def test_every_folder_makes_a_good_name(folder: str) -> None:
    assert explain_name(agent_name(folder)) == ""
    tried = names_to_try("", folder, "MAIN")
    assert all(explain_name(name) == "" and name.lower() != "main" for name in tried)
    assert len(tried) == len(set(tried)) >= 5


def test_a_name_that_is_asked_for_comes_first_unless_it_is_the_agents_own() -> None:
    assert names_to_try("inner", "/work/api", "main")[:2] == ["inner", "work-inner"]
    assert names_to_try("", "/home/shop", "shop")[0] == "home-shop"
