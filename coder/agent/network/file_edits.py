"""Files by lines and by search and replace, for programs that work on a workspace's sources (`/api/v0/…` of the agent).

Everything is done to a text first and written at the end, so that a file is changed by all its edits or by none.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any

import trio

from coder.agent.network.http_messages import HttpReply, HttpRequest, Routes, json_reply, message_reply
from coder.agent.state import AgentState

MAX_FILE = 1 << 20
MAX_LINE = 1024
MAX_LINES = 2000
MAX_RESPONSE = 32768
"Bounds of an answer where the request names none (docs/protocol/agent-services.md#http)."


class EditError(ValueError):
    """An edit that cannot be made; its text says which and why."""


async def _read_lines(_state: AgentState, request: HttpRequest) -> HttpReply:
    def number(name: str, default: int) -> int:
        return int(request.first(name) or 0) or default

    path = Path(request.first("path"))
    limits = {name: number(name, default) for name, default in (
        ("offset", 1), ("limit", MAX_LINES), ("max_file_size", MAX_FILE), ("max_line_bytes", MAX_LINE),
        ("max_response_lines", MAX_LINES), ("max_response_bytes", MAX_RESPONSE),
    )}  # fmt: skip
    try:
        found = await trio.to_thread.run_sync(_numbered_lines, path, limits, abandon_on_cancel=True)
    except OSError as error:
        return json_reply(200, {"success": False, "error": f"{error.strerror}: {path}"})
    except EditError as error:
        return json_reply(200, {"success": False, "error": str(error)})
    return json_reply(200, {"success": True, **found})


def _numbered_lines(path: Path, limits: Mapping[str, int]) -> dict[str, Any]:
    size = _size_of(path)
    if size > limits["max_file_size"]:
        raise EditError(f"the file has {size} bytes, more than {limits['max_file_size']}: read a part of it")
    lines = path.read_bytes().decode("utf-8", "replace").split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    first = limits["offset"]
    if first < 1 or (lines and first > len(lines)):
        raise EditError(f"offset {first} is outside of the file, which has {len(lines)} lines")
    taken: list[str] = []
    used = 0
    for number, line in enumerate(lines[first - 1 :][: min(limits["limit"], limits["max_response_lines"])], first):
        raw = line.rstrip("\r").encode()
        text = raw[: limits["max_line_bytes"]].decode("utf-8", "ignore")
        shown = f"{number}\t{text}" + (" [line cut]" if len(raw) > limits["max_line_bytes"] else "")
        used += len(shown.encode()) + 1
        if used > limits["max_response_bytes"]:
            break
        taken.append(shown)
    return {"file_size": size, "total_lines": len(lines), "lines_read": len(taken), "content": "\n".join(taken)}


async def _edit_files(_state: AgentState, request: HttpRequest) -> HttpReply:
    wanted = json.loads(request.body or b"{}")
    files = wanted.get("files") or []
    if not files:
        return message_reply(400, "must specify at least one file")
    try:
        done = await trio.to_thread.run_sync(_edit_all, files)
    except EditError as error:
        return message_reply(400, str(error))
    shows_diff = bool(wanted.get("include_diff"))
    return json_reply(200, {"files": [
        {"path": str(path), **({"diff": _diff(path, before, after)} if shows_diff else {})}
        for path, before, after in done
    ]})  # fmt: skip


def _edit_all(files: Sequence[Mapping[str, Any]]) -> list[tuple[Path, str, str]]:
    """(path, before, after) of each. Nothing is written unless every edit of every file can be made."""
    done = []
    for file in files:
        path = Path(str(file["path"]))
        if _size_of(path) > MAX_FILE * 16:
            raise EditError(f"{path} is too large to be edited")
        # newline="" keeps line ends as they are.
        with path.open(encoding="utf-8", newline="") as source:
            before = source.read()
        done.append((path, before, edited(before, file.get("edits") or [], str(path))))
    for path, before, after in done:
        if before != after:
            _replace(path, after)
    return done


def edited(text: str, edits: Sequence[Mapping[str, Any]], name: str) -> str:
    """The text after its edits, one after the other. Raises EditError for one that is not clear."""
    if not edits:
        raise EditError(f"{name}: must specify at least one edit")
    for edit in edits:
        search, replace = str(edit["search"]), str(edit["replace"])
        if not search:
            raise EditError(f"{name}: there is nothing to search for")
        count = text.count(search)
        if not count:
            raise EditError(f"{name}: the text to search for is not there: {search[:80]!r}")
        if count > 1 and not edit.get("replace_all"):
            raise EditError(f"{name}: the text is there {count} times; give more of it, or set replace_all")
        text = text.replace(search, replace)
    return text


def _replace(path: Path, text: str) -> None:
    """Whole or not at all; what a link points to is changed, and the mode stays."""
    target = path.resolve()
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    mode = stat.S_IMODE(target.stat().st_mode)
    try:
        temporary.touch(mode=0o600)
        temporary.write_text(text, encoding="utf-8", newline="")
        temporary.chmod(mode)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _size_of(path: Path) -> int:
    """Raises EditError for what is no file, OSError for what is not there."""
    if not path.is_absolute():
        raise EditError(f'file path must be absolute: "{path}"')
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise EditError(f'not a regular file: "{path}"')
    return found.st_size


def _diff(path: Path, before: str, after: str) -> str:
    lines = (before.splitlines(keepends=True), after.splitlines(keepends=True))
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in unified_diff(*lines, f"a{path}", f"b{path}")
    )


async def _resolve_path(state: AgentState, request: HttpRequest) -> HttpReply:
    given = request.first("path")
    if not given:
        return message_reply(400, "path must not be empty")
    path = state.identity.home / given[2:] if given == "~" or given.startswith("~/") else state.workdir() / given
    return json_reply(200, {"resolved_path": str(await trio.to_thread.run_sync(path.resolve))})


FILE_ROUTES: Routes = {
    ("GET", "/api/v0/resolve-path"): _resolve_path,
    ("GET", "/api/v0/read-file-lines"): _read_lines,
    ("POST", "/api/v0/edit-files"): _edit_files,
}
