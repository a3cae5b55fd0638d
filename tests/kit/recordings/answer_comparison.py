"""Compare an answer with the recorded one, by the equality of tests/data/api/recorded/README.md.

Returns a list of differences. Placeholders (`<uuid:1>`, `<time:3>`, `{user.alice}` …) keep their meaning in a `Names`
table for one whole area.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

_TOKEN = re.compile(r"(<[a-z][a-z0-9-]*(?::[^<>]{1,40})?>|\{[A-Za-z_][\w.]*\})")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_SHAPES = {
    "uuid": _UUID,
    "time": r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d| \+0000 UTC)",
    "token": r"[A-Za-z0-9]{10}-[A-Za-z0-9]{22}",
    "keyid": r"[A-Za-z0-9]{10}",
    "number": r"-?\d+(?:\.\d+)?",
    "dur": r"[-\w.µ]+",
    "today": r"\d{4}-\d\d-\d\d",
}
_QUOTED = ("json: ", "pq: ", "sql: ", "parse document: ")
"""Details that quote Go's or the database's own errors need not be copied."""
_CHANCE = (
    (re.compile(r"code_challenge=[\w-]{43}"), "code_challenge=…"),
    (re.compile(r"please wait \d+ seconds"), "please wait … seconds"),
    # We speak one minor version more than the recorded server.
    (re.compile(r"server is at version 2\.1[01],"), "server is at version …,"),
    (re.compile(r"\*\.apps\.example\.com:\d+"), "*.apps.example.com:…"),
    # How long a relay took to answer, in a line of a log.
    (re.compile(r"(derpdist=\d+v[46]:)[\d.]+m?s"), r"\1…"),
)
_EQUAL_WITHIN_AREA = {"uuid", "token", "name", "keyid", "oauth-secret"}
_UNORDERED = {
    "roles",
    "global_roles",
    "scopes",
    "allow_list",
    "external",
    "site_permissions",
    "user_permissions",
    "organization_permissions",
    "organization_member_permissions",
    "stages",
    "timings",
    "available",
    "provisioner_timings",
    "log_sources",
    "scripts",
    "Parameters",
    # Messages of one batch are delivered side by side: which of them comes first is chance.
    "notifications",
}
_PRESENCE_ONLY = {"worker_id", "worker_name"}
"""Depends on which daemon took the job."""
_JOB_LOG = {"log_source", "stage", "output"}
"""The numbers of such lines go on over all jobs of a server, whatever the earlier ones had to say."""
_MEASURED = {
    "round_trip_ping",
    "round_trip_ping_ms",
    "latency_ms",
    "RegionLatency",
    "RegionV4Latency",
    "threshold_database",
}
"""How long something took on that machine, or how long it may: only the kind is compared."""
_MOMENTARY = {"latency"}
"""An agent's measurements of relays: there as soon as it has made them."""
_CHOSEN_TIME = re.compile(r"t\.(now|(plus|minus)(\d+)([mhd]))")
_FULL_TIMES: dict[str, Callable[[datetime], datetime]] = {
    "hour": lambda now: now.replace(minute=0, second=0),
    "today": lambda now: now.replace(hour=0, minute=0, second=0),
    # In the last hour of a day, the day after it: an end within this hour is no future to insights.
    "tomorrow": lambda now: (now + timedelta(hours=1)).replace(hour=0, minute=0, second=0) + timedelta(days=1),
    "week_ago": lambda now: now.replace(hour=0, minute=0, second=0) - timedelta(days=7),
    "off": lambda now: now.replace(hour=0, minute=30, second=0) - timedelta(days=1),
}
"""Full hours and days around now; `off` is neither."""
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def chosen_time(name: str, began: datetime) -> str:
    """A time the client chose, named after its distance from now: `t.plus2h`; or a full hour or day around when the
    area `began`, which is one for all of them: midnight may fall between two. Raises KeyError for other names."""
    match = _CHOSEN_TIME.fullmatch(name)
    if match is None:
        return _FULL_TIMES[name.removeprefix("t.")](began.replace(microsecond=0)).strftime("%Y-%m-%dT%H:%M:%SZ")
    moment = datetime.now(UTC).replace(microsecond=0)
    if match[2]:
        distance = timedelta(**{_UNITS[match[4]]: int(match[3])})
        moment += distance if match[2] == "plus" else -distance
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


_ANY_WORKER = {"worker_id", "worker_name"}
"Which daemon took a job is chance: presence alone is compared (rule 5)."
_NEWER = {"agents_allowed"}
"Required by types.schema.json, which is newer than the recordings."


@dataclass
class Names:
    """What placeholders stood for so far."""

    bound: dict[str, str] = field(default_factory=dict)
    "Bound names: `user.alice` -> value."
    seen: dict[str, str] = field(default_factory=dict)
    "Numbered placeholders: `<uuid:3>` -> value."
    moments: dict[str, datetime] = field(default_factory=dict)
    "Numbered times of the answer at hand: equal numbers are equal times there, and nowhere else."
    began: datetime = field(default_factory=lambda: datetime.now(UTC))

    def fill(self, text: str) -> str:
        """`text` with bound names and repeats put in. Raises KeyError for an unbound name."""

        def put(match: re.Match[str]) -> str:
            token = match[0]
            if token.startswith("<repeat:"):
                char, count = token[8:-1].rsplit(":", 1)
                return char * int(count)
            if token.startswith("{"):
                name = token[1:-1]
                if name.startswith("t.") and name not in self.bound:
                    self.bound[name] = chosen_time(name, self.began)
                return self.bound[name]
            return token

        return _TOKEN.sub(put, text)

    def fill_all(self, value: Any) -> Any:
        """`fill` for every string inside a JSON value."""
        if isinstance(value, str):
            return self.fill(value)
        if isinstance(value, list):
            return [self.fill_all(item) for item in value]
        if isinstance(value, dict):
            if set(value) == {"$repeat"}:
                char, count = value["$repeat"]
                return char * count
            return {self.fill(key): self.fill_all(item) for key, item in value.items()}
        return value


def differences(expected: Any, actual: Any, names: Names, where: str = "", key: str = "") -> list[str]:
    """What makes `actual` another answer than `expected`; empty when nothing does."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return _dict_differences(expected, actual, names, where)
    if isinstance(expected, list) and isinstance(actual, list):
        return _list_differences(expected, actual, names, where, key)
    if isinstance(expected, str):
        return _text_differences(expected, actual, names, where)
    if isinstance(expected, bool) or isinstance(actual, bool) or expected is None or actual is None:
        return [] if expected is actual else [f"{where}: {expected!r} became {actual!r}"]
    if isinstance(expected, int | float) and isinstance(actual, int | float):
        return [] if expected == actual else [f"{where}: {expected!r} became {actual!r}"]
    return [f"{where}: {_short(expected)} became {_short(actual)}"]


def _dict_differences(expected: dict[str, Any], actual: dict[str, Any], names: Names, where: str) -> list[str]:
    filled = {_filled_key(key, names): value for key, value in expected.items()}
    found = [f"{where}/{key}: missing" for key in filled if key not in actual and key not in _MOMENTARY]
    found += [f"{where}/{key}: not expected" for key in actual if key not in {*filled, *_NEWER, *_MOMENTARY}]
    for key, value in filled.items():
        if key in _MEASURED | _MOMENTARY and type(value) is type(actual.get(key)):
            continue
        if key == "id" and filled.keys() >= _JOB_LOG:
            continue
        if key in actual and key not in _ANY_WORKER:
            found += differences(value, actual[key], names, f"{where}/{key}", key)
    return found


def _filled_key(key: str, names: Names) -> str:
    try:
        return names.fill(key)
    except KeyError:
        return key


def _list_differences(expected: list[Any], actual: list[Any], names: Names, where: str, key: str) -> list[str]:
    if len(expected) != len(actual):
        return [f"{where}: {len(expected)} items became {len(actual)}"]
    if (key in _UNORDERED or _without_order(expected)) and _ordered(expected, actual, _copy(names), where):
        return _as_sets(expected, actual, names, where)
    return _ordered(expected, actual, names, where)


def _without_order(items: list[Any]) -> bool:
    """Roles, members and a build's parameters come in any order; tokens in that of their names, some of them random."""
    first = items[0] if items else None
    if "preferred_username" in items:  # the names of claims
        return True
    if not isinstance(first, dict):
        return False
    marks = {"site_permissions", "token_name", "user_created_at"}
    return bool(marks & set(first)) or set(first) == {"name", "value"}


def _copy(names: Names) -> Names:
    return Names(dict(names.bound), dict(names.seen), dict(names.moments), names.began)


def _ordered(expected: list[Any], actual: list[Any], names: Names, where: str) -> list[str]:
    found = []
    for index, (left, right) in enumerate(zip(expected, actual, strict=True)):
        found += differences(left, right, names, f"{where}/{index}")
    return found


def _as_sets(expected: list[Any], actual: list[Any], names: Names, where: str) -> list[str]:
    left = list(actual)
    for item in expected:
        for candidate in left:
            trial = _copy(names)
            if not differences(item, candidate, trial, where):
                names.seen.update(trial.seen)
                names.moments.update(trial.moments)
                left.remove(candidate)
                break
        else:
            return [f"{where}: {_short(item)} is missing"]
    return []


def _text_differences(expected: str, actual: Any, names: Names, where: str) -> list[str]:
    whole = _TOKEN.fullmatch(expected)
    if whole is not None:
        return _placeholder_differences(expected, actual, names, where)
    if not isinstance(actual, str):
        return [f"{where}: {_short(expected)} became {_short(actual)}"]
    if expected == actual or expected.startswith(_QUOTED):
        return []
    expected, actual = _same_text(expected), _same_text(actual)
    if expected == actual:
        return []
    parts = _TOKEN.split(expected)
    if len(parts) == 1:
        return [f"{where}: {_short(expected)} became {_short(actual)}"]
    pattern = "".join(_part_pattern(part, names) for part in parts)
    if re.fullmatch(pattern, actual, re.DOTALL):
        return []
    return [f"{where}: {_short(expected)} became {_short(actual)}"]


def _same_text(text: str) -> str:
    """Without what differs from run to run though the recording has it in words."""
    for pattern, stand_in in _CHANCE:
        text = pattern.sub(stand_in, text)
    return text


def _part_pattern(part: str, names: Names) -> str:
    if part.startswith("{") and part.endswith("}"):
        return re.escape(names.bound.get(part[1:-1], part))
    if part.startswith("<repeat:"):
        char, count = part[8:-1].rsplit(":", 1)
        return re.escape(char) + "{" + count + "}"
    if part.startswith("<") and part.endswith(">"):
        if part in names.seen:
            return re.escape(names.seen[part])
        return _SHAPES.get(part[1:-1].split(":", maxsplit=1)[0], ".*?")
    return re.escape(part)


def _same_time(one: datetime, other: datetime) -> bool:
    """Whole milliseconds are stamps of log lines, each a reading of the clock of its own: those that are equal in the
    recording came close together there, and need not fall on one millisecond here."""
    stamps = one.microsecond % 1000 == other.microsecond % 1000 == 0
    return abs(one - other) <= timedelta(milliseconds=50) if stamps else one == other


def _placeholder_differences(expected: str, actual: Any, names: Names, where: str) -> list[str]:
    if expected.startswith("{"):
        name = expected[1:-1]
        if name not in names.bound:
            names.bound[name] = str(actual)
            return []
        same = str(actual) == names.bound[name]
        return [] if same else [f"{where}: {expected} = {names.bound[name]!r} became {_short(actual)}"]
    kind = expected[1:-1].split(":", maxsplit=1)[0]
    if kind == "number":
        good = isinstance(actual, int | float) and not isinstance(actual, bool)
        good = good or (where.startswith("header") and str(actual).isdigit())
        return [] if good else [f"{where}: a number became {_short(actual)}"]
    if not isinstance(actual, str):
        return [f"{where}: {expected} became {_short(actual)}"]
    if kind == "repeat":
        char, count = expected[8:-1].rsplit(":", 1)
        return [] if actual == char * int(count) else [f"{where}: {expected} became {_short(actual)}"]
    shape = _SHAPES.get("today" if kind.startswith("today-") else kind)
    if shape is not None and not re.fullmatch(shape, actual):
        return [f"{where}: {expected} became {_short(actual)}"]
    if kind == "time" and _TIME.fullmatch(actual) is not None:
        moment = datetime.fromisoformat(actual.replace("Z", "+00:00"))
        if ":" in expected and not _same_time(names.moments.setdefault(expected, moment), moment):
            return [f"{where}: {expected} was {names.moments[expected]} and became {actual!r}"]
    if ":" in expected and kind in _EQUAL_WITHIN_AREA:
        known = names.seen.setdefault(expected, actual)
        if known != actual:
            return [f"{where}: {expected} was {known!r} and became {actual!r}"]
    return []


def pick(pointer: str, document: Any) -> Any:
    """A JSON pointer; `*` collects from every element of a list."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    return _walk(parts, document)


def _walk(parts: list[str], node: Any) -> Any:
    if not parts:
        return node
    first, rest = parts[0], parts[1:]
    if first == "*":
        return [_walk(rest, item) for item in node] if isinstance(node, list) else []
    if isinstance(node, list):
        return _walk(rest, node[int(first)]) if first.isdigit() and int(first) < len(node) else None
    return _walk(rest, node[first]) if isinstance(node, dict) and first in node else None


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return repr(text if len(text) <= 160 else text[:157] + "...")
