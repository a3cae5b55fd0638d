"""Whole files and folders of a workspace: list, read, write, resolve (`/api/v0/…` of the agent)."""

from __future__ import annotations

import json
import os
from pathlib import Path

from coder.agent.disk import on_disk
from coder.agent.network.http_messages import HttpReply, HttpRequest, Routes, json_reply, message_reply
from coder.agent.state import AgentState
from coder.agent.workspace.files import NotRegularError, open_regular, read_regular, workdir
from coder.base.json_types import JsonObject

MAX_FILE = 64 << 20
"Bytes of one reply; clients request the rest by offset (ours)."


async def _list_directory(state: AgentState, request: HttpRequest) -> HttpReply:
    fields = json.loads(request.body or b"{}")
    parts = fields.get("path") or []
    base = state.identity.home if fields.get("relativity") == "home" else Path("/")
    requested_path = request.first("path")
    directory = Path(requested_path) if requested_path else base.joinpath(*parts)
    return json_reply(
        200,
        {
            "absolute_path": list(directory.parts[1:]),
            "absolute_path_string": str(directory),
            "contents": await on_disk(_entries, directory),
        },
    )


def _entries(directory: Path) -> list[JsonObject]:
    """Return the folder's entries. An unreadable entry (another user's FUSE mount) does not hide the others: pathlib's
    `is_dir` would raise there."""
    return [
        {"name": item.name, "absolute_path_string": str(item), "is_dir": os.path.isdir(item)}  # noqa: PTH112
        for item in sorted(directory.iterdir(), key=lambda item: item.name)
    ]


async def _read_file(_state: AgentState, request: HttpRequest) -> HttpReply:
    path = Path(request.first("path"))
    offset, limit = int(request.first("offset") or 0), int(request.first("limit") or 0)
    if not path.is_absolute():
        return message_reply(400, f'file path must be absolute and a file: "{path}"')
    if offset < 0 or limit < 0:
        return message_reply(400, "offset and limit must not be negative")
    try:
        body = await on_disk(read_regular, path, min(limit or MAX_FILE, MAX_FILE), offset)
    except NotRegularError:
        return message_reply(400, f'not a regular file: "{path}"')
    return HttpReply(200, body, "application/octet-stream")


async def _write_file(_state: AgentState, request: HttpRequest) -> HttpReply:
    path = Path(request.first("path"))
    if not path.is_absolute():
        return message_reply(400, f'file path must be absolute: "{path}"')
    try:
        await on_disk(_write, path, request.body)
    except NotRegularError:
        return message_reply(400, f'not a regular file: "{path}"')
    return message_reply(200, f"Successfully wrote to {path}")


def _write(path: Path, body: bytes) -> None:
    """Write in place: open descriptors and hard links see the new content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_regular(path, os.O_WRONLY | os.O_CREAT) as file:
        file.truncate(0)
        file.write(body)


async def _resolve_path(state: AgentState, request: HttpRequest) -> HttpReply:
    requested_path = request.first("path")
    if not requested_path:
        return message_reply(400, "path must not be empty")
    if requested_path == "~" or requested_path.startswith("~/"):
        path = state.identity.home / requested_path[2:]
    else:
        path = await workdir(state) / requested_path
    return json_reply(200, {"resolved_path": str(await on_disk(path.resolve))})


WHOLE_FILE_ROUTES: Routes = {
    ("POST", "/api/v0/list-directory"): _list_directory,
    ("GET", "/api/v0/read-file"): _read_file,
    ("POST", "/api/v0/write-file"): _write_file,
    ("GET", "/api/v0/resolve-path"): _resolve_path,
}
