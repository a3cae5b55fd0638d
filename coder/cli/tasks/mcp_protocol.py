"""Model Context Protocol over standard streams, the subset for a server of tools: JSON-RPC 2.0, one message per line.

Specification: modelcontextprotocol.io, 2025-06-18. Why not its library: docs/decisions/mcp.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from coder.base.errors import CoderError
from coder.base.json_types import Json
from coder.base.quoted import quoted
from coder.cli.core.failures import describe_exception

VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")
"""Supported protocol versions, the newest first."""
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602


class Arguments:
    """Arguments of a call, whose types `Tool.fault` has checked."""

    def __init__(self, values: Mapping[str, Json]) -> None:
        self._values = values

    def text(self, name: str, default: str = "") -> str:
        """Return a text; the default for an absent or empty one."""
        return str(self._values.get(name) or default)

    def number(self, name: str, default: int = 0) -> int:
        """Return an integer; the default for an absent one."""
        value = self._values.get(name, default)
        return value if isinstance(value, int) else default

    def flag(self, name: str) -> bool:
        """Return whether a boolean is set."""
        return bool(self._values.get(name))

    def members(self, name: str) -> Mapping[str, Json]:
        """Return the members of an object; none for an absent one."""
        value = self._values.get(name)
        return value if isinstance(value, Mapping) else {}

    def value(self, name: str) -> Json:
        """Return a value of any type. Raise KeyError for an absent one."""
        return self._values[name]


@dataclass(frozen=True, slots=True)
class Tool:
    """Tool that a model can call."""

    name: str
    description: str
    call: Callable[[Arguments], Json]
    "Function from arguments to any JSON value. Raises CoderError."
    arguments: Mapping[str, tuple[str, str]]
    "Properties: name -> (JSON type, description)."
    required: tuple[str, ...] = ()

    def described(self) -> dict[str, Json]:
        """Return the description for `tools/list`."""
        properties: Json = {name: {"type": kind, "description": text} for name, (kind, text) in self.arguments.items()}
        schema: Json = {"type": "object", "properties": properties, "required": list(self.required)}
        return {"name": self.name, "description": self.description, "inputSchema": schema}

    def fault(self, arguments: Mapping[str, Json]) -> str:
        """Return what is wrong with the arguments; "" if they are valid."""
        for name in self.required:
            if arguments.get(name) in (None, "", [], {}):
                return f"{name} is required"
        for name, value in arguments.items():
            kind = self.arguments.get(name, ("", ""))[0]
            if not kind:
                return f"unknown argument {quoted(name)}"
            if not isinstance(value, _TYPES[kind]) or (kind == "integer" and isinstance(value, bool)):
                return f"{name} must be of type {kind}"
        return ""


_TYPES: dict[str, type] = {"string": str, "integer": int, "object": dict, "boolean": bool, "array": list}


class McpServer:
    """Server for one client."""

    def __init__(self, version: str, tools: Iterable[Tool], instructions: str = "") -> None:
        self._version = version
        self._tools = {tool.name: tool for tool in tools}
        self._instructions = instructions

    def answer_line(self, line: str) -> str | None:
        """Return the reply to one line, without its line break; None if it requires none."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return json.dumps(_failure(None, PARSE_ERROR, "this is not JSON"))
        answer = self._answer(message)
        return None if answer is None else json.dumps(answer)

    def _answer(self, message: Json) -> dict[str, Json] | None:
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            is_answer = isinstance(message, dict) and ("result" in message or "error" in message)
            return None if is_answer else _failure(None, INVALID_REQUEST, "this is not a request")
        if "id" not in message:
            return None  # a notification
        ident, params = message["id"], message.get("params") or {}
        if not isinstance(ident, str | int | float | None):
            return _failure(None, INVALID_REQUEST, "an id must be a string or a number")
        if not isinstance(params, dict):
            return _failure(ident, INVALID_PARAMS, "params must be an object")
        match message["method"]:
            case "initialize":
                return _result(ident, self._initialize(params))
            case "ping":
                return _result(ident, {})
            case "tools/list":
                return _result(ident, {"tools": [tool.described() for tool in self._tools.values()]})
            case "tools/call":
                return self._call(ident, params)
        return _failure(ident, METHOD_NOT_FOUND, f"unknown method {quoted(message['method'])}")

    def _initialize(self, params: Mapping[str, Json]) -> dict[str, Json]:
        requested = params.get("protocolVersion")
        result: dict[str, Json] = {
            "protocolVersion": requested if requested in VERSIONS else VERSIONS[0],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "Coder", "version": self._version},
        }
        return result | ({"instructions": self._instructions} if self._instructions else {})

    def _call(self, ident: Json, params: Mapping[str, Json]) -> dict[str, Json]:
        tool = self._tools.get(str(params.get("name")))
        arguments = params.get("arguments") or {}
        if tool is None or not isinstance(arguments, dict):
            return _failure(ident, INVALID_PARAMS, f"unknown tool {quoted(params.get('name'))}")
        if fault := tool.fault(arguments):
            return _failure(ident, INVALID_PARAMS, fault)
        try:
            result = tool.call(Arguments(arguments))
            text = result if isinstance(result, str) else json.dumps(result)
        except CoderError as error:  # the model gets the error and can try something else
            return _result(ident, {"content": [_text(f"{error}")], "isError": True})
        except Exception as error:  # one invalid answer of a server or an agent must not end the session
            message = f"the tool failed, probably on an answer with an unexpected format: {describe_exception(error)}"
            return _result(ident, {"content": [_text(message)], "isError": True})
        return _result(ident, {"content": [_text(text)], "isError": False})


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _result(ident: Json, value: Json) -> dict[str, Json]:
    return {"jsonrpc": "2.0", "id": ident, "result": value}


def _failure(ident: Json, code: int, message: str) -> dict[str, Json]:
    return {"jsonrpc": "2.0", "id": ident, "error": {"code": code, "message": message}}
