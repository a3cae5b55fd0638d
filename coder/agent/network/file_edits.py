"""Files by lines and by search and replace, for programs that work on a workspace's sources (`/api/v0/…` of the agent).

Everything is done to a text first and written at the end, so that a file is changed by all its edits or by none.
"""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any

from coder.agent.disk import on_disk
from coder.agent.network.http_messages import HttpReply, HttpRequest, Routes, json_reply, message_reply
from coder.agent.network.whole_files import WHOLE_FILE_ROUTES
from coder.agent.state import AgentState
from coder.agent.workspace.files import NotRegularError, read_regular

MAX_FILE, MAX_EDITED = 1 << 20, 16 << 20
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
        found = await on_disk(_numbered_lines, path, limits)
    except OSError as error:
        return json_reply(200, {"success": False, "error": f"{error.strerror}: {path}"})
    except EditError as error:
        return json_reply(200, {"success": False, "error": str(error)})
    return json_reply(200, {"success": True, **found})


def _numbered_lines(path: Path, limits: Mapping[str, int]) -> dict[str, Any]:
    most = limits["max_file_size"]
    content = _content(path, most, f"the file has more than {most} bytes: read a part of it")
    lines = content.decode("utf-8", "replace").split("\n")
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
    return {"file_size": len(content), "total_lines": len(lines), "lines_read": len(taken), "content": "\n".join(taken)}


async def _edit_files(_state: AgentState, request: HttpRequest) -> HttpReply:
    wanted = json.loads(request.body or b"{}")
    files = wanted.get("files") or []
    if not files:
        return message_reply(400, "must specify at least one file")
    given_up = threading.Event()
    try:
        done = await on_disk(_edit_all, files, given_up)
    except EditError as error:
        return message_reply(400, str(error))
    finally:
        given_up.set()
    shows_diff = bool(wanted.get("include_diff"))
    return json_reply(
        200,
        {
            "files": [
                {"path": str(path), **({"diff": _diff(path, before, after)} if shows_diff else {})}
                for path, before, after in done
            ]
        },
    )


def _edit_all(files: Sequence[Mapping[str, Any]], given_up: threading.Event) -> list[tuple[Path, str, str]]:
    """(path, before, after) of each. Nothing is written unless every edit of every file can be made.

    Nor when nobody waits any more: who was told that it took too long must not find the files changed later.
    """
    done: list[tuple[Path, str, str]] = []
    found: dict[Path, str] = {}
    texts: dict[Path, str] = {}
    for file in files:
        path = Path(str(file["path"]))
        content = _editable(path)
        place = path.resolve()
        found.setdefault(place, content)
        before = texts.get(place, found[place])  # a file may be named twice, by two names
        texts[place] = edited(before, file.get("edits") or [], str(path))
        done.append((path, before, texts[place]))
    changed = {place: text for place, text in texts.items() if text != found[place]}
    for place in changed:
        if _editable(place) != found[place]:  # by somebody else's edit, which would be lost
            raise EditError(f"{place} was changed meanwhile")
    if given_up.is_set():
        return []
    for place, text in changed.items():
        _replace(place, text)
    return done


def _editable(path: Path) -> str:
    """Raises as `_content`, UnicodeDecodeError."""
    return _content(path, MAX_EDITED, f"{path} is too large to be edited").decode()


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


def _replace(target: Path, text: str) -> None:
    """Whole or not at all; the mode stays."""
    temporary = target.with_name(f".coder-{os.urandom(8).hex()}.tmp")  # of this edit alone
    mode = stat.S_IMODE(target.stat().st_mode)
    try:
        temporary.touch(mode=0o600, exist_ok=False)
        temporary.write_text(text, encoding="utf-8", newline="")
        temporary.chmod(mode)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _content(path: Path, most: int, too_large: str) -> bytes:
    """Raises EditError for what is no file or goes beyond `most` bytes, OSError for what cannot be read."""
    if not path.is_absolute():
        raise EditError(f'file path must be absolute: "{path}"')
    try:
        content = read_regular(path, most + 1)
    except NotRegularError as error:
        raise EditError(f'not a regular file: "{path}"') from error
    if len(content) > most:
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
