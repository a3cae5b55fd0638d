"""Requests and replies of the agent's HTTP API."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from coder.agent.state import AgentState
from coder.net.websocket import WebSocketStream


@dataclass(frozen=True, slots=True)
class HttpRequest:
    method: str
    path: str
    query: dict[str, list[str]]
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    "Headers with lower-case names."

    def first(self, name: str) -> str:
        return (self.query.get(name) or [""])[0]


@dataclass(frozen=True, slots=True)
class HttpReply:
    status: int
    body: bytes
    kind: str = "application/json; charset=utf-8"


Handler = Callable[[AgentState, HttpRequest], Awaitable[HttpReply]]
Stream = Callable[[AgentState, HttpRequest, WebSocketStream], Awaitable[None]]
"""Serves a WebSocket to its end."""
Routes = dict[tuple[str, str], Handler]


def json_reply(status: int, value: object) -> HttpReply:
    return HttpReply(status, json.dumps(value).encode() + b"\n")


def message_reply(status: int, message: str, detail: str = "") -> HttpReply:
    return json_reply(status, {"message": message, **({"detail": detail} if detail else {})})
