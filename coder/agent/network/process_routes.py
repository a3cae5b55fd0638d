"""Processes of the workspace over the agent's HTTP API: start, list, output, signal."""

from __future__ import annotations

import json

import trio

from coder.agent.network.http_messages import HttpReply, HttpRequest, Routes, json_reply, message_reply
from coder.agent.state import AgentState
from coder.agent.workspace.processes import SIGNALS

PREFIX = "/api/v0/processes/"
LONGEST_WAIT = 300.0
"Seconds a request may wait for a process to end (docs/protocol/agent-services.md#http)."
_ENDING = message_reply(503, "The agent is shutting down.")


async def _start(state: AgentState, request: HttpRequest) -> HttpReply:
    body = json.loads(request.body or b"{}")
    command, env = body.get("command"), body.get("env") or {}
    if not isinstance(command, str) or not command:
        return message_reply(400, "Command is required.")
    if not all(isinstance(value, str) for value in env.values()):
        return message_reply(400, "env must be an object of strings")
    if state.processes is None:
        return _ENDING
    process = await state.processes.start(
        command, str(body.get("workdir") or ""), env, background=bool(body.get("background"))
    )
    return json_reply(200, {"id": process.id, "started": True})


async def _list(state: AgentState, _request: HttpRequest) -> HttpReply:
    return _ENDING if state.processes is None else json_reply(200, {"processes": state.processes.rows()})


async def process_route(state: AgentState, request: HttpRequest) -> HttpReply:
    """Serve `{id}/output` and `{id}/signal`."""
    ident, _, verb = request.path.removeprefix(PREFIX).partition("/")
    process = state.processes.get(ident) if state.processes is not None else None
    if (request.method, verb) not in {("GET", "output"), ("POST", "signal")}:
        return message_reply(404, "Route not found.")
    if process is None:
        return message_reply(404, f'Process "{ident}" not found.')
    if verb == "output":
        if is_long_poll(request):
            with trio.move_on_after(LONGEST_WAIT):
                await process.ended.wait()
        return json_reply(200, process.output_json())
    body = json.loads(request.body or b"{}").get("signal")
    if body not in SIGNALS:
        return message_reply(400, f"Unsupported signal {body!r}.", f"Use one of: {', '.join(SIGNALS)}.")
    if process.exited is not None:
        return message_reply(409, f'Process "{ident}" is not running.')
    process.send(body)
    return message_reply(200, f'Signal "{body}" sent to process "{ident}".')


def is_long_poll(request: HttpRequest) -> bool:
    return request.path.startswith(PREFIX) and request.first("wait") == "true"


PROCESS_ROUTES: Routes = {
    ("POST", "/api/v0/processes/start"): _start,
    ("GET", "/api/v0/processes/list"): _list,
}
