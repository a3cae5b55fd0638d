"""The sandbox's worker: a separate process that parses and evaluates content of users.

The server's end, the frames and the limits are `foundation/sandbox.py`. The worker has no server, database or secret.
The process ends with standard input. Parsed templates are cached within a fixed amount of memory; the least recently
used is evicted first.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import traceback
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, TypedDict

from coder.base.json_types import Json, JsonObject
from coder.coderd.services.templates.template_sources import parse_archives
from coder.domain.hcl.values import well_formed
from coder.domain.people.user_secrets import read_pairs
from coder.domain.rendering.builds import GivenValues, build_values
from coder.domain.rendering.module_scope import RenderRequest
from coder.domain.rendering.parameters import render
from coder.domain.rendering.presets import check_parameters, check_presets, render_presets
from coder.domain.rendering.sources import ParsedFiles
from coder.domain.rendering.workspace_tags import render_tags

MAX_CACHED = 24 << 20
"""Estimated bytes of all cached templates."""
_LENGTH = struct.Struct(">I")


class CallValues(TypedDict, total=False):
    """Arguments of a call, by name; each call has some of them."""

    inputs: dict[str, str]
    owner: JsonObject
    variables: dict[str, str]
    number: int
    given: GivenValuesFrame
    format: str
    content: str


class GivenValuesFrame(TypedDict):
    """Fields of `GivenValues`."""

    build: dict[str, str]
    previous: dict[str, str]
    preset: dict[str, str]
    first_build: bool


class Frame(TypedDict, total=False):
    """Request of the server: to load archives, or to make a call."""

    load: str
    files: list[str]
    call: str
    documents: str
    values: CallValues


# ---- calls


def _request(values: CallValues) -> RenderRequest:
    return RenderRequest(values["inputs"], values["owner"], values["variables"], lambda: str(uuid.uuid4()))


def _form(files: ParsedFiles, values: CallValues) -> Json:
    """Return the content of a form."""
    return render(files, _request(values)).response(values["number"])


def _build(files: ParsedFiles, values: CallValues) -> Json:
    """Return `[parameter values, tags, refusal]` of a build."""
    request = _request(values)
    chosen, refusal = build_values(files, request, GivenValues(**values["given"]))
    if refusal is not None:
        return [{}, {}, refusal]
    tags, refusal = render_tags(render(files, replace(request, inputs=chosen)))
    return [chosen, tags, refusal]


def _version(files: ParsedFiles, values: CallValues) -> Json:
    """Return `[tags, refusal]` of a new version."""
    request = _request(values)
    rendered = render(files, request)
    tags, refusal = render_tags(rendered)
    refusal = refusal or check_parameters(rendered)
    return [tags, refusal or check_presets(render_presets(files, request, rendered))]


def _secrets(_files: ParsedFiles, values: CallValues) -> Json:
    """Return names and values of a file of secrets, or a text that describes the problem."""
    kind = values["format"]
    document: Json = values["content"]
    if kind == "yaml":
        from coder.base.yaml_documents import YamlError, read_document

        try:
            document = read_document(values["content"])
        except YamlError as error:
            return f"is no yaml: {error}"
    elif kind == "json":
        try:
            document = json.loads(values["content"], parse_float=str, parse_int=str)  # a PIN keeps its digits
        except (ValueError, RecursionError) as error:
            return f"is no json: {error}"
    return read_pairs(kind, document)


CALLS: Mapping[str, Callable[[ParsedFiles, CallValues], Json]] = {
    "form": _form,
    "build": _build,
    "version": _version,
    "secrets": _secrets,
}


class SandboxWorker:
    """Answers frames one after the other."""

    def __init__(self) -> None:
        self._cache: OrderedDict[str, tuple[ParsedFiles, int]] = OrderedDict()
        self._size = 0

    def answer(self, head: Frame) -> JsonObject:
        """Return the answer to a frame. Never raises.

        `failed` names the exceeded resource; `broken` has the location of an error, which is a defect of this program.
        """
        try:
            if "load" in head:
                self._load(head["load"], head["files"])
                return {"value": None}
            name = head["documents"]
            if name and name not in self._cache:
                return {"missing": True}
            if name:
                self._cache.move_to_end(name)
            files = self._cache[name][0] if name else ParsedFiles({})
            return {"value": CALLS[head["call"]](files, head["values"])}
        except MemoryError:
            return {"failed": "memory"}
        except RecursionError:
            return {"failed": "depth"}
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            return {"broken": {"error": type(error).__name__, "place": f"{frame.filename}:{frame.lineno}"}}

    def _load(self, name: str, paths: Sequence[str]) -> None:
        with ExitStack() as opened:
            files, cost = parse_archives([opened.enter_context(Path(path).open("rb")) for path in paths])
        self._cache[name] = (files, cost)
        self._size += cost
        while self._size > MAX_CACHED and len(self._cache) > 1:
            self._size -= self._cache.popitem(last=False)[1][1]


# ---- the process


def serve(cpu_seconds: int, memory: int) -> int:
    """Answer frames until standard input ends."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of a library must not become a frame
    limit = _limits(cpu_seconds, memory)
    worker = SandboxWorker()
    while (frame := _read(source)) is not None:
        limit()
        text = _encoded(worker.answer(frame))
        sink.write(_LENGTH.pack(len(text)) + text)
        sink.flush()
    return 0


def _encoded(answer: JsonObject) -> bytes:
    try:
        # The server would not read half a surrogate pair.
        return json.dumps(well_formed(answer)).encode()
    except (MemoryError, RecursionError) as error:
        return json.dumps({"failed": "memory" if isinstance(error, MemoryError) else "depth"}).encode()


def _limits(cpu_seconds: int, memory: int) -> Callable[[], None]:
    """Set the limits of the process; return a function that resets the CPU limit before each frame."""
    if sys.platform == "win32":
        return lambda: None  # the server bounds its wait
    import resource

    for kind, limit in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        if kind != resource.RLIMIT_AS or sys.platform == "linux":
            resource.setrlimit(kind, (limit, limit))

    def begin() -> None:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(usage.ru_utime + usage.ru_stime) + 1 + cpu_seconds, hard))

    return begin


def _read(source: BinaryIO) -> Frame | None:
    length = source.read(_LENGTH.size)
    if len(length) < _LENGTH.size:
        return None
    frame: Frame = json.loads(source.read(*_LENGTH.unpack(length)))
    return frame
