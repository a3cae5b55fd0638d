"""Routes about the agent's upgrade to its server's program: its state, and a request to check now. Ours."""

from __future__ import annotations

from coder.agent.network.http_messages import HttpReply, HttpRequest, Routes, json_reply, message_reply
from coder.agent.state import AgentState
from coder.base.version import BUILD_VERSION

PATH = "/api/v0/upgrade"


async def _describe(state: AgentState, _request: HttpRequest) -> HttpReply:
    if state.upgrades is None:
        disabled = {"state": "disabled", "detail": "", "version": BUILD_VERSION, "server_version": ""}
        return json_reply(200, disabled)
    return json_reply(200, state.upgrades.describe())


async def _request(state: AgentState, _request: HttpRequest) -> HttpReply:
    if state.upgrades is None:
        return message_reply(
            409,
            "This agent does not upgrade itself.",
            "Run its attach command again, or start it with --self-upgrade.",
        )
    state.upgrades.request()
    return json_reply(202, state.upgrades.describe())


UPGRADE_ROUTES: Routes = {("GET", PATH): _describe, ("POST", PATH): _request}
