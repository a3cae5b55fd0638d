"""`--reason`: every build has a reason, one of those that callers can use."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from coder.base.errors import CoderError
from coder.cli.core import session
from coder.cli.core.command import Command
from coder.cli.core.options import Options
from coder.cli.core.parsing import parse
from coder.cli.declarations.workspaces.lifecycle import RESTART, START, STOP, UPDATE
from coder.cli.workspaces import lifecycle
from coder.client.offered_version import UpdateTarget
from coder.domain.workspaces.builds import REASONS_FOR_CLIENTS

BUILDS = {"start": ["start"], "stop": ["stop"], "restart": ["stop", "start"], "update": ["stop", "start"]}
COMMANDS: dict[str, Command[Options]] = {command.words: command for command in (START, STOP, RESTART, UPDATE)}


@pytest.fixture
def posted(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Requests of builds for a workspace that can be started, stopped and updated."""
    bodies: list[dict[str, Any]] = []
    latest = SimpleNamespace(status="stopped", transition="start", job=SimpleNamespace(status="succeeded"))
    workspace = SimpleNamespace(id="w", name="dev", latest_build=latest, outdated=True, template_active_version_id="v")

    def request(_method: str, _path: str, *, json: dict[str, Any]) -> bytes:
        bodies.append(json)
        return b""

    monkeypatch.setattr(session, "client", lambda _invocation: SimpleNamespace(request=request))
    monkeypatch.setattr(lifecycle, "find_workspace", lambda _client, _name: workspace)
    monkeypatch.setattr(lifecycle, "_start_extra", lambda *_, **__: {})
    monkeypatch.setattr(lifecycle, "_values_for", lambda *_, **__: {})
    monkeypatch.setattr(lifecycle, "read", lambda _answer, _kind: latest)
    monkeypatch.setattr(lifecycle, "update_target", lambda _client, _workspace: UpdateTarget(UUID(int=1), True))
    for name in ("confirm", "handle_build", "watch_build"):
        monkeypatch.setattr(lifecycle, name, lambda *_, **__: None)
    return bodies


@pytest.mark.parametrize("words", BUILDS)
@pytest.mark.parametrize("reason", ["", *REASONS_FOR_CLIENTS])
def test_every_build_has_reason(words: str, reason: str, posted: list[dict[str, Any]]) -> None:
    argv = ["dev", *([f"--reason={reason}"] if reason else [])]
    assert COMMANDS[words].run(parse(COMMANDS[words], argv, {})) == 0
    assert [(body["transition"], body["reason"]) for body in posted] == [
        (transition, reason or "cli") for transition in BUILDS[words]
    ]


@pytest.mark.parametrize("words", BUILDS)
def test_server_reasons_are_rejected(words: str) -> None:
    with pytest.raises(CoderError, match="reason"):
        parse(COMMANDS[words], ["dev", "--reason=autostop"], {})


def test_editor_reasons_are_accepted() -> None:
    assert {"vscode_connection", "jetbrains_connection", "ssh_connection", "cli"} <= set(REASONS_FOR_CLIENTS)
