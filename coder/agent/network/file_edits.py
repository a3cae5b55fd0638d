"""Files by line numbers and by search and replace, for programs that edit a workspace's sources (`/api/v0/…` of the
agent).

All edits are applied in memory and written at the end, so a file gets all of its edits or none.
"""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from pathlib import Path

from coder.agent.disk import on_disk
from coder.agent.network.http_messages import HttpReply, HttpRequest, Routes, json_reply, message_reply
from coder.agent.network.whole_files import WHOLE_FILE_ROUTES
from coder.agent.state import AgentState
from coder.agent.workspace.files import NotRegularError, read_regular
from coder.base.json_types import Json, JsonObject, as_list, as_object
from coder.base.private_files import keep_access, open_private, replace_file

MAX_FILE, MAX_EDITED = 1 << 20, 16 << 20
MAX_LINE = 1024
MAX_LINES = 2000
MAX_RESPONSE = 32768
"Default limits of a reply (docs/protocol/agent-services.md#http)."


class EditError(ValueError):
    """An edit cannot be applied; the text names it and the reason."""


async def _read_lines(_state: AgentState, request: HttpRequest) -> HttpReply:
    def number(name: str, default: int) -> int:
        return int(request.first(name) or 0) or default

    path = Path(request.first("path"))
    limits = {
        name: number(name, default)
        for name, default in (
            ("offset", 1),
            ("limit", MAX_LINES),
            ("max_file_size", MAX_FILE),
            ("max_line_bytes", MAX_LINE),
            ("max_response_lines", MAX_LINES),
            ("max_response_bytes", MAX_RESPONSE),
        )
    }
    try:
        originals = await on_disk(_numbered_lines, path, limits)
    except OSError as error:
        return json_reply(200, {"success": False, "error": f"{error.strerror}: {path}"})
    except EditError as error:
        return json_reply(200, {"success": False, "error": str(error)})
    return json_reply(200, {"success": True, **originals})


def _numbered_lines(path: Path, limits: Mapping[str, int]) -> JsonObject:
    limit = limits["max_file_size"]
    content = _content(path, limit, f"the file has more than {limit} bytes: read it in parts")
    lines = content.decode("utf-8", "replace").split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    first = limits["offset"]
    if first < 1 or (lines and first > len(lines)):
        raise EditError(f"offset {first} is outside of the file, which has {len(lines)} lines")
    numbered: list[str] = []
    used = 0
    for number, line in enumerate(lines[first - 1 :][: min(limits["limit"], limits["max_response_lines"])], first):
        raw = line.rstrip("\r").encode()
        text = raw[: limits["max_line_bytes"]].decode("utf-8", "ignore")
        line_out = f"{number}\t{text}" + (" [line cut]" if len(raw) > limits["max_line_bytes"] else "")
        used += len(line_out.encode()) + 1
        if used > limits["max_response_bytes"]:
            break
        numbered.append(line_out)
    return {
        "file_size": len(content),
        "total_lines": len(lines),
        "lines_read": len(numbered),
        "content": "\n".join(numbered),
    }


async def _edit_files(_state: AgentState, request: HttpRequest) -> HttpReply:
    fields = json.loads(request.body or b"{}")
    files = fields.get("files") or []
    if not files:
        return message_reply(400, "must specify at least one file")
    cancelled = threading.Event()
    try:
        done = await on_disk(_edit_all, files, cancelled)
    except EditError as error:
        return message_reply(400, str(error))
    finally:
        cancelled.set()
    shows_diff = bool(fields.get("include_diff"))
    return json_reply(
        200,
        {
            "files": [
                {"path": str(path), **({"diff": _diff(path, before, after)} if shows_diff else {})}
                for path, before, after in done
            ]
        },
    )


def _edit_all(files: Sequence[Mapping[str, Json]], cancelled: threading.Event) -> list[tuple[Path, str, str]]:
    """Return (path, before, after) of each file. Nothing is written unless every edit of every file can be applied.

    Nothing is written after the request was cancelled either: a client whose request timed out must not find the files
    changed later.
    """
    done: list[tuple[Path, str, str]] = []
    originals: dict[Path, str] = {}
    texts: dict[Path, str] = {}
    for file in files:
        path = Path(str(file["path"]))
        content = _editable(path)
        target = path.resolve()
        originals.setdefault(target, content)
        before = texts.get(target, originals[target])  # the request may name a file twice, by two names
        texts[target] = edited(before, [as_object(edit) for edit in as_list(file.get("edits"))], str(path))
        done.append((path, before, texts[target]))
    changed = {target: text for target, text in texts.items() if text != originals[target]}
    for target in changed:
        if _editable(target) != originals[target]:  # another program's edit, which would be lost
            raise EditError(f"{target} was changed by another program")
    if cancelled.is_set():
        return []
    for target, text in changed.items():
        _replace(target, text)
    return done


def _editable(path: Path) -> str:
    """Return the content as text. Raises as `_content`, UnicodeDecodeError."""
    return _content(path, MAX_EDITED, f"{path} is too large to be edited").decode()


def edited(text: str, edits: Sequence[Mapping[str, Json]], name: str) -> str:
    """Return the text after applying the edits in order. Raises EditError for an ambiguous or missing match."""
    if not edits:
        raise EditError(f"{name}: must specify at least one edit")
    for edit in edits:
        search, replace = str(edit["search"]), str(edit["replace"])
        if not search:
            raise EditError(f"{name}: search must not be empty")
        count = text.count(search)
        if not count:
            raise EditError(f"{name}: the search text was not found: {search[:80]!r}")
        if count > 1 and not edit.get("replace_all"):
            raise EditError(f"{name}: the search text occurs {count} times; make it longer, or set replace_all")
        text = text.replace(search, replace)
    return text


def _replace(target: Path, text: str) -> None:
    """Replace the file atomically; its mode or access list is kept."""
    temporary = target.with_name(f".coder-{os.urandom(8).hex()}.tmp")  # unique to this edit
    mode = stat.S_IMODE(target.stat().st_mode)
    try:
        with os.fdopen(open_private(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as out:
            out.write(text.encode())
        temporary.chmod(mode)
        keep_access(target, temporary)
        replace_file(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _content(path: Path, limit: int, too_large: str) -> bytes:
    """Return the content. Raises EditError for a path that is not a regular file or exceeds `limit` bytes, OSError when
    it cannot be read."""
    if not path.is_absolute():
        raise EditError(f'file path must be absolute: "{path}"')
    try:
        content = read_regular(path, limit + 1)
    except NotRegularError as error:
        raise EditError(f'not a regular file: "{path}"') from error
    if len(content) > limit:
        raise EditError(too_large)
    return content


def _diff(path: Path, before: str, after: str) -> str:
    lines = (before.splitlines(keepends=True), after.splitlines(keepends=True))
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in unified_diff(*lines, f"a{path}", f"b{path}")
    )


FILE_ROUTES: Routes = {
    **WHOLE_FILE_ROUTES,
    ("GET", "/api/v0/read-file-lines"): _read_lines,
    ("POST", "/api/v0/edit-files"): _edit_files,
}
