"""Tools of the MCP servers that a workspace's project configures, over the agent's HTTP API: list, call."""

from __future__ import annotations

import json

from coder.agent.network.http_messages import HttpReply, HttpRequest, Routes, json_reply, message_reply
from coder.agent.state import AgentState
from coder.agent.workspace.mcp_servers import ToolServerError

_ENDING = message_reply(503, "The agent is shutting down.")


async def _tools(state: AgentState, _request: HttpRequest) -> HttpReply:
    if state.tool_servers is None:
        return _ENDING
    try:
        return json_reply(200, {"tools": await state.tool_servers.tools()})
    except ToolServerError as error:
        return message_reply(500, "Reading the workspace's MCP servers failed.", str(error))


async def _call(state: AgentState, request: HttpRequest) -> HttpReply:
    fields = json.loads(request.body or b"{}")
    name, arguments = fields.get("tool_name"), fields.get("arguments") or {}
    if not isinstance(name, str) or not name or not isinstance(arguments, dict):
        return message_reply(400, "tool_name must be a string, and arguments an object")
    if state.tool_servers is None:
        return _ENDING
    try:
        return json_reply(200, await state.tool_servers.call(name, arguments))
    except KeyError:
        return message_reply(404, f'There is no tool "{name}".')
    except ToolServerError as error:
        return message_reply(502, "The tool's MCP server failed.", str(error))


MCP_ROUTES: Routes = {("GET", "/api/v0/mcp/tools"): _tools, ("POST", "/api/v0/mcp/call-tool"): _call}
