"""Parser of terraform's -json output: lines for the build log, and the duration of each action. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from coder.base.json_types import Json, JsonObject, as_list, as_object
from coder.rpc.proto import provisioner_pb2 as pb

Line = tuple["pb.LogLevel.ValueType", str]

MAX_LINE = 64 * 1024
"Bytes (ours) after which a line is cut."
_CUT_EVENT = re.compile(r'\{"@level":"(\w+)","@message":"')
"Start of an event that is too long to be parsed."

CUT = " … (cut)"
"End of a line that was cut."

_LEVELS = {
    "trace": pb.LogLevel.TRACE,
    "debug": pb.LogLevel.DEBUG,
    "info": pb.LogLevel.INFO,
    "warn": pb.LogLevel.WARN,
    "error": pb.LogLevel.ERROR,
}

_STARTS = {"apply_start", "provision_start", "refresh_start"}
_ENDS = {
    "apply_complete": pb.TimingState.COMPLETED,
    "apply_errored": pb.TimingState.FAILED,
    "provision_complete": pb.TimingState.COMPLETED,
    "provision_errored": pb.TimingState.FAILED,
    "refresh_complete": pb.TimingState.COMPLETED,
}


def read_line(raw: bytes) -> tuple[JsonObject | None, str]:
    """Return (the JSON object, "") or (None, plain text). Never fails: invalid UTF-8 is replaced, a long text cut."""
    text = raw[:MAX_LINE].decode("utf-8", "replace").rstrip("\r\n").replace("\x00", "\ufffd")
    if len(raw.rstrip(b"\r\n")) > MAX_LINE:
        text += CUT
    if text.startswith("{"):
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            return None, text
        if isinstance(value, dict) and "@message" in value:
            return value, ""
    return None, text


def read_cut_line(raw: bytes) -> Line | None:
    """Return level and text of the beginning of an event; None for other lines."""
    text = read_line(raw)[1]
    event = _CUT_EVENT.match(text)
    return (_LEVELS.get(event[1], pb.LogLevel.INFO), text[event.end() :]) if event else None


def log_lines(event: JsonObject) -> list[Line]:
    """Return the log lines of one event; diagnostics take several."""
    level = _LEVELS.get(str(event.get("@level", "")).lower(), pb.LogLevel.INFO)
    message = str(event["@message"]).replace("\x00", "\ufffd")
    if len(message) > MAX_LINE:
        message = message[:MAX_LINE] + CUT
    diagnostic = event.get("diagnostic")
    if not isinstance(diagnostic, dict):
        return [(level, message)]
    level = pb.LogLevel.WARN if diagnostic.get("severity") == "warning" else pb.LogLevel.ERROR
    return [(level, message), *((level, line) for line in format_diagnostic(diagnostic).split("\n"))]


def format_diagnostic(diagnostic: Mapping[str, Json]) -> str:
    """Format location, source, values and detail of a diagnostic."""
    lines: list[str] = []
    location, snippet = as_object(diagnostic.get("range")), as_object(diagnostic.get("snippet"))
    if location:
        line = as_object(location["start"])["line"]
        if not snippet:
            lines += [f"on {location['filename']} line {line}:", "  (source code not available)"]
        else:
            context = f", in {snippet['context']}" if snippet.get("context") else ""
            lines.append(f"on {location['filename']} line {line}{context}:")
            first = snippet.get("start_line", line)
            for number, code in enumerate(
                str(snippet.get("code", "")).split("\n"), first if isinstance(first, int) else 0
            ):
                lines.append(f"  {number}: {code}")
            values = [as_object(value) for value in as_list(snippet.get("values"))]
            values.sort(key=lambda value: str(value.get("traversal")))
            if values:
                lines.append("    ├────────────────")
                lines += [f"    │ {value.get('traversal')} {value.get('statement')}" for value in values]
        lines.append("")
    return "\n".join(lines) + ("\n" if lines else "") + str(diagnostic.get("detail") or "")


# --- timings
@dataclass(slots=True)
class StageTimings:
    """Collector of one stage's spans from the events of its terraform runs."""

    stage: str
    _open: dict[tuple[str, str], datetime] = field(default_factory=dict)
    _done: list[pb.Timing] = field(default_factory=list)

    def note(self, event: JsonObject) -> None:
        kind = event.get("type")
        hook = event.get("hook")
        if kind == "init_output":
            self._note_init(event)
        if not isinstance(hook, dict):
            return
        resource = hook.get("resource") or {}
        key = (str(kind).partition("_")[0], str(resource.get("addr", "")))
        at = _time(event)
        if kind in _STARTS:
            self._open[key] = at
        elif kind in _ENDS and key in self._open:
            action = {"provision": "provision", "refresh": "state refresh"}.get(key[0], str(hook.get("action", "")))
            self.add(self._open.pop(key), at, action, str(resource.get("implied_provider", "")), key[1], _ENDS[kind])

    def _note_init(self, event: JsonObject) -> None:
        code, at = event.get("message_code"), _time(event)
        if code == "initializing_modules_message":
            self._open["load", "modules"] = at
        elif code == "initializing_provider_plugin_message":
            self._close_load("modules", at)
            self._open["load", "provider plugins"] = at
        elif code == "output_init_success_message":
            self._close_load("modules", at)
            self._close_load("provider plugins", at)

    def _close_load(self, resource_kind: str, at: datetime) -> None:
        start = self._open.pop(("load", resource_kind), None)
        if start is not None:
            self.add(start, at, "load", "", resource_kind, pb.TimingState.COMPLETED)

    def add(
        self, start: datetime, end: datetime, action: str, source: str, resource: str, state: pb.TimingState.ValueType
    ) -> None:
        timing = pb.Timing(action=action, source=source, resource=resource, stage=self.stage, state=state)
        timing.start.FromDatetime(start)
        timing.end.FromDatetime(end)
        self._done.append(timing)

    def finish(self, start: datetime, end: datetime, *, failed: bool) -> list[pb.Timing]:
        """Return all spans, including the whole stage's."""
        state = pb.TimingState.FAILED if failed else pb.TimingState.COMPLETED
        self.add(start, end, "terraform", "coder", f"coder_stage_{self.stage}", state)
        return self._done


def _time(event: JsonObject) -> datetime:
    try:
        return datetime.fromisoformat(str(event.get("@timestamp", ""))).astimezone(UTC)
    except ValueError:
        return datetime.now(UTC)
