"""Parsing of devcontainer.json in any shape, and the names of sub-agents."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coder.agent.devcontainers.builder import Built, read_outcome_untrusted
from coder.agent.devcontainers.commands import MAX_STDERR, CommandError, CommandResult
from coder.agent.devcontainers.configuration import (
    DISPLAY_APPS,
    Configuration,
    agent_name,
    names_to_try,
    read_configuration_untrusted,
)
from coder.domain.agents.sub_agents import MAX_TEXT, explain_name
from coder.rpc.proto import agent_pb2

App = agent_pb2.CreateSubAgentRequest.App


def _read(**fields: Any) -> Configuration:
    return read_configuration_untrusted(json.dumps(fields).encode())


def test_merged_layers_combine() -> None:
    first = {"apps": [{"slug": "docs", "url": "http://a"}, {"slug": "web"}], "displayApps": {"vscode": False}}
    last = {
        "name": "inner",
        "autoStart": True,
        "displayApps": {"vscode_insiders": True, "none": True, "ssh_helper": 1},
        "apps": [
            {
                "slug": "docs",
                "displayName": "Docs",
                "url": "http://b",
                "share": "organization",
                "openIn": "tab",
                "order": 3,
                "hidden": True,
                "healthCheck": {"url": "http://b/h", "interval": 5, "threshold": 2},
            }
        ],
    }
    merged = {"remoteUser": "dev", "customizations": {"coder": [first, last]}}
    result = _read(configuration={}, mergedConfiguration=merged, workspace={"workspaceFolder": "/workspaces/x"})
    assert (result.name, result.auto_start, result.ignore) == ("inner", True, False)
    assert (result.remote_user, result.workspace_folder) == ("dev", "/workspaces/x")
    assert result.display_apps == ("vscode_insiders", "web_terminal", "ssh_helper", "port_forwarding_helper")
    docs, web = result.apps
    check = App.Healthcheck(url="http://b/h", interval=5, threshold=2)
    requested = App(slug="docs", display_name="Docs", url="http://b", hidden=True, order=3, healthcheck=check)
    requested.share, requested.open_in = App.ORGANIZATION, App.TAB
    assert (docs, web) == (requested, App(slug="web"))


def test_plain_configuration_is_enough() -> None:
    result = _read(configuration={"customizations": {"coder": {"ignore": True}}, "containerUser": "root"})
    assert (result.ignore, result.remote_user) == (True, "root")
    assert result.display_apps == tuple(name for name, shown in DISPLAY_APPS.items() if shown)


ODD: list[Any] = [
    [],
    7,
    None,
    "x",
    {"customizations": []},
    {"customizations": {"coder": 7}},
    {"customizations": {"coder": [None, 7]}},
    {"customizations": {"coder": {"apps": {"a": 1}, "displayApps": [], "name": 7, "ignore": "yes"}}},
    {"customizations": {"coder": {"apps": [7, {"slug": 7, "order": 2**40, "share": [], "healthCheck": "x"}]}}},
]


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_invalid_fields_are_ignored(odd: Any) -> None:
    result = _read(configuration=odd)
    assert (result.name, result.ignore, result.remote_user) == ("", False, "")
    assert all(app == App(slug="") for app in result.apps)


@pytest.mark.parametrize("answer", [b"", b"[]", b"7", b"{", b"[" * 9999])
def test_unparsable_output_is_reported(answer: bytes) -> None:
    with pytest.raises(CommandError, match="could not be parsed"):
        read_configuration_untrusted(answer)


OUTCOMES = {
    b'{"outcome":"error","message":"m","description":"no such image"}\n': "devcontainer up failed: no such image",
    b"": "devcontainer up failed: last words",
    b"nothing\n7\n": "devcontainer up failed: last words",
    b'{"outcome":"success"}': "devcontainer up failed: last words",
}


@pytest.mark.parametrize("output", OUTCOMES)
def test_failed_build_reports_reason(output: bytes) -> None:
    with pytest.raises(CommandError) as caught:
        read_outcome_untrusted(CommandResult(1, output, "words\nlast words"))
    assert str(caught.value) == OUTCOMES[output]


def test_last_line_is_the_outcome() -> None:
    line = b'noise\n{"outcome":"success","containerId":"c1","remoteUser":"dev","remoteWorkspaceFolder":7}\n'
    assert read_outcome_untrusted(CommandResult(0, line, "")) == Built("c1", "dev", "")


FOLDERS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=400) | st.from_regex(
    r"(/[A-Za-z0-9._ -]{0,80}){0,5}", fullmatch=True
)


@given(FOLDERS, FOLDERS | st.just(""), st.sampled_from(["main", "MAIN", "api", "devcontainer"]))
@example("/a/---", "", "main")
@example("C:\\x", "My Project", "main")
@example("/" + "x" * 300 + "/" + "y" * 300, "", "main")
@example("/work/ümlaut.dev/", "a" * 64, "main")
@example("/work/api", "a" * 65, "main")
def test_tried_names_are_valid(folder: str, requested: str, own: str) -> None:
    assert explain_name(agent_name(folder)) == ""
    tried = names_to_try(requested, folder, own)
    assert [explain_name(name) for name in tried] == [""] * len(tried)
    assert own.lower() not in {name.lower() for name in tried}
    assert len(tried) == len(set(tried)) >= 5
    if requested and not explain_name(requested) and requested.lower() != own.lower():
        assert tried[0] == requested


@given(FOLDERS, FOLDERS, st.sampled_from(["", "api", "x" * 64]))
def test_last_name_is_unique(item: str, other: str, requested: str) -> None:
    """Regardless of the others' number: the last name belongs to one folder alone."""
    last = [names_to_try(requested, folder, "main")[-1] for folder in (item, other)]
    assert (last[0] == last[1]) == (item == other)


FIELDS = ("outcome", "containerId", "remoteUser", "remoteWorkspaceFolder", "description", "message")
OUTPUTS: tuple[Any, ...] = ("success", "x" * 100_000, "ü" * 9000, "", 7, None, [], {"a": "x" * 100_000})


@given(
    st.dictionaries(st.sampled_from(FIELDS), st.integers(0, len(OUTPUTS) - 1)),
    st.binary(max_size=200),
    st.sampled_from([0, 5, MAX_STDERR]),
)
def test_builder_texts_are_bounded(chosen: dict[str, int], noise: bytes, stderr_size: int) -> None:
    fields, stderr_tail = {field: OUTPUTS[which] for field, which in chosen.items()}, "x" * stderr_size
    output = noise + b"\n" + json.dumps(fields).encode()
    try:
        built = read_outcome_untrusted(CommandResult(1, output, stderr_tail))
    except CommandError as error:
        assert len(str(error)) <= len("devcontainer up failed: ") + MAX_STDERR
    else:
        assert fields["outcome"] == "success" and built.container_id == fields["containerId"] != ""
        assert all(len(text) <= MAX_TEXT for text in (built.container_id, built.remote_user, built.workspace_folder))


def test_description_texts_are_bounded() -> None:
    for size, kept in ((MAX_TEXT, True), (MAX_TEXT + 1, False)):
        text = "x" * size
        result = _read(configuration={"remoteUser": text}, workspace={"workspaceFolder": text})
        assert (result.remote_user, result.workspace_folder) == ((text, text) if kept else ("", ""))


def test_requested_name_comes_first() -> None:
    assert names_to_try("inner", "/work/api", "main")[:2] == ["inner", "work-inner"]
    assert names_to_try("", "/home/shop", "shop")[0] == "home-shop"
