"""Applications of sub-agents: each is checked separately, so that an invalid one does not prevent the others."""

from __future__ import annotations

from datetime import datetime
from typing import get_args

from coder.api.agents.agents import DisplayApp, WorkspaceAppOpenIn, WorkspaceAppSharingLevel
from coder.api.base.enums import WorkspaceAgentPortShareLevel
from coder.base.ids import new_uuid
from coder.coderd.services.provisioning.resources import new_app_row
from coder.coderd.store.agents.agent_apps import AppRow
from coder.coderd.store.agents.agents import AgentRow
from coder.domain.agents import sub_agents as rules
from coder.domain.apps.external_addresses import explain_made_address
from coder.domain.foundation.share_levels import shared_at_most
from coder.rpc.errors import RpcError
from coder.rpc.proto import agent_pb2

Request = agent_pb2.CreateSubAgentRequest
# Numbers of newer releases are missing here.
_DISPLAY_APPS: dict[int, DisplayApp] = {Request.DisplayApp.Value(name.upper()): name for name in get_args(DisplayApp)}
_LEVELS: dict[int, WorkspaceAppSharingLevel] = {
    Request.App.SharingLevel.Value(name.upper()): name for name in get_args(WorkspaceAppSharingLevel)
}
_OPEN_IN: dict[int, WorkspaceAppOpenIn] = {
    Request.App.OpenIn.Value(name.upper().replace("-", "_")): name for name in get_args(WorkspaceAppOpenIn)
}
_APP_TEXTS = ("command", "display_name", "group", "icon", "url")


class _AppError(Exception):
    """Reason why an application is not created: a field, or "", and a sentence."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


def validate_apps(
    request: Request, agent: AgentRow, max_level: WorkspaceAgentPortShareLevel, now: datetime
) -> tuple[list[AppRow], list[agent_pb2.CreateSubAgentResponse.AppCreationError]]:
    """Return the valid applications, and the errors of the others."""
    rows: list[AppRow] = []
    faults = []
    taken: set[str] = set()
    for index, app in enumerate(request.apps):
        try:
            rows.append(_app_row(app, agent, index, max_level, now, taken))
            taken.add(app.slug)
        except _AppError as error:
            fault = agent_pb2.CreateSubAgentResponse.AppCreationError(index=index, error=str(error))
            if error.field:
                fault.field = error.field
            faults.append(fault)
    return rows, faults


def _app_row(
    app: Request.App,
    agent: AgentRow,
    index: int,
    max_level: WorkspaceAgentPortShareLevel,
    now: datetime,
    taken: set[str],
) -> AppRow:
    if problem := rules.explain_slug(app.slug):
        raise _AppError("slug", problem)
    if app.slug in taken:
        raise _AppError("slug", f'duplicate app slug "{app.slug}"')
    for name in _APP_TEXTS:
        if problem := explain_text(getattr(app, name)):
            raise _AppError(name, f"{name} {problem}")
    if app.external and (problem := explain_made_address(app.url)):
        raise _AppError("url", f"url {problem}")
    if problem := explain_text(app.healthcheck.url):
        raise _AppError("healthcheck", f"its URL {problem}")
    if (level := _LEVELS.get(app.share)) is None:
        raise _AppError("share", f"unknown sharing level {app.share}")
    if (open_in := _OPEN_IN.get(app.open_in)) is None:
        raise _AppError("open_in", f"unknown way to open {app.open_in}")
    return new_app_row(
        app,
        ident=new_uuid(),
        agent_id=agent.id,
        slug=rules.stored_slug(agent.name, app.slug),
        sharing_level=shared_at_most(level, max_level),
        open_in=open_in,
        now=now,
        position=index,
    )


def read_display_app(value: int) -> DisplayApp:
    if (name := _DISPLAY_APPS.get(value)) is None:
        raise RpcError(0, f"unknown display app {value}")
    return name


def explain_text(text: str) -> str:
    if len(text) > rules.MAX_TEXT:
        return f"may have {rules.MAX_TEXT} characters"
    # Postgres cannot store a zero byte.
    return "contains a zero byte" if "\x00" in text else ""
