"""Fuzz the API from its own description and report wrong answers.

`ask` sends what Schemathesis generates from a seed, mostly with identifiers of real objects. `paths`, `queries` and
`bodies` fill each operation with values that break careless servers, sent as standard bytes over `http.client`:
friendlier clients would repair or refuse them. Wrong is a 5xx, a status that the description does not have, and an
error without the envelope.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from requests.structures import CaseInsensitiveDict
from schemathesis import Case, GenerationMode
from schemathesis.core.result import Ok

NUL, LONE, NEWLINE = "a\0b", "\ud800", "x\r\nlevel=error msg=forged\n\x1b[31m"
SEGMENTS = (
    "%00",
    "a%00b",
    "%ff%fe",
    "%",
    "%zz",
    "%c0%af",
    "..%2f..%2fetc%2fpasswd",
    "%0d%0aX-Forged:%201",
    "%F0%9F%92%A9",
    "%27%20OR%201=1--",
    "a" * 3000,
    "00000000-0000-0000-0000-000000000000",
    "-1",
    "99999999999999999999999",
    "%ed%a0%80",
)
"""One piece of a path, as it goes over the wire."""
VALUES = (
    "%00",
    "a%00b",
    "%ff%fe",
    "%zz",
    "%ed%a0%80",
    "-1",
    "2147483648",
    "99999999999999999999999999",
    "1e309",
    "NaN",
    "%0d%0a",
    "%27;DROP%20TABLE%20users;--",
    "x" * 5000,
    "name:%00",
    "owner:%22unclosed",
    "a:b:c:::",
    "%D9%A3",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59-23:59",
)
"""One value of a query, as it goes over the wire."""
BODIES: tuple[bytes, ...] = (
    b"",
    b"null",
    b"[]",
    b'"text"',
    b"1e999",
    b"{",
    b'{"a":1,"a":2}',
    b"\xff\xfe{}",
    b"[" * 20_000,
    b'{"a":' * 20_000,
    b"{}{}",
    b'{"\\u0000":"\\u0000"}',
    b'{"a":"\\ud800"}',
    b'{"a":1' + b"0" * 5000 + b"}",
    b"\xef\xbb\xbf{}",
    b"NaN",
    b'{"' + b"k" * 20_000 + b'":1}',
)
LEAVES: tuple[Any, ...] = (
    NUL,
    LONE,
    NEWLINE,
    "",
    "x" * 70_000,
    None,
    True,
    -1,
    0,
    2**31,
    2**63 - 1,
    2**63,
    10**40,
    1e300,
    [],
    [None],
    {},
    {"a": {"a": {}}},
    "'; DROP TABLE users; --",
    "٣",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999-23:59",
    "00000000-0000-0000-0000-000000000000",
    "../../etc/passwd",
    "\u202egnp.exe",
    ["a\0b"],
    {"a\0b": "a\0b"},
)
"""Put in place of one value of a good body."""


@dataclass(frozen=True)
class Strange:
    """One request: the path as it goes over the wire."""

    method: str
    target: str
    body: bytes | None = None

    def __str__(self) -> str:
        shown = "" if self.body is None else f" {self.body[:120]!r}"
        return f"{self.method} {self.target[:160]}{shown}"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


def paths(path: str, good: Mapping[str, str], method: str) -> Iterator[Strange]:
    """Each parameter in turn made strange, the others as `good` says."""
    for name in re.findall(r"\{([^}]*)\}", path):
        for segment in SEGMENTS:
            yield Strange(method, fill(path, {**good, name: segment}), b"{}" if method != "GET" else None)


def queries(path: str, good: Mapping[str, str], operation: Mapping[str, Any], method: str) -> Iterator[Strange]:
    base = fill(path, good)
    for item in operation["parameters"]:
        if item["in"] == "query":
            for value in VALUES:
                yield Strange(method, f"{base}?{item['name']}={value}", None if method == "GET" else b"{}")
    yield Strange(method, f"{base}?%00=%ff&&=&%zz", None if method == "GET" else b"{}")


def bodies(path: str, good: Mapping[str, str], method: str, body: Any) -> Iterator[Strange]:
    """Whole bodies that are strange, then the good one with one value replaced."""
    base = fill(path, good)
    for raw in BODIES:
        yield Strange(method, base, raw)
    for changed in replaced(body):
        # The JSON text keeps lone surrogates as escapes.
        yield Strange(method, base, json.dumps(changed).encode())


def replaced(value: Any, leaves: tuple[Any, ...] = LEAVES) -> Iterator[Any]:
    """`value` with one place in it strange."""
    yield from leaves
    if isinstance(value, dict):
        for key, inner in value.items():
            for other in replaced(inner, leaves):
                yield {**value, key: other}
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            for other in replaced(inner, leaves):
                yield [*value[:index], other, *value[index + 1 :]]


def example(schema: Mapping[str, Any], components: Mapping[str, Any], depth: int = 3) -> Any:
    """A value of a schema, every property of an object present."""
    if "$ref" in schema:
        return example(components[schema["$ref"].rpartition("/")[2]], components, depth - 1) if depth else None
    for word in ("allOf", "anyOf"):
        if word in schema:
            return example(schema[word][0], components, depth)
    if "enum" in schema:
        return schema["enum"][-1]
    kind = schema.get("type")
    if kind == "object":
        return {name: example(inner, components, depth) for name, inner in schema.get("properties", {}).items()}
    if kind == "array":
        return [example(schema["items"], components, depth)] if depth and schema.get("items") else []
    if kind == "string" and schema.get("format") == "uuid":
        return "6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a11"
    return {"string": "text", "integer": 1, "number": 1, "boolean": True}.get(str(kind))


def fill(path: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\{([^}]*)\}", lambda found: values.get(found[1], "x"), path)


class Sender:
    """One kept-alive connection that sends what it is told, byte for byte."""

    def __init__(self, url: str, headers: Mapping[str, str] = {}, patience: float = 60.0) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port or 80)
        self._headers = dict(headers)
        self._patience = patience
        self._connection: http.client.HTTPConnection | None = None

    def send(self, strange: Strange) -> Answer:
        """Raises OSError or http.client.HTTPException when there is no answer."""
        for attempt in (1, 2):
            connection = self._connection or http.client.HTTPConnection(*self._address, timeout=self._patience)
            fresh, self._connection = self._connection is None, connection
            try:
                return self._exchange(connection, strange)
            except (http.client.HTTPException, OSError):
                self.close()
                if fresh or attempt == 2:
                    raise
        raise AssertionError

    def _exchange(self, connection: http.client.HTTPConnection, strange: Strange) -> Answer:
        target = quote(strange.target, safe="/?&=%:;~'\"()*!,@+$[]{}|^`\\<>")
        connection.putrequest(strange.method, target, skip_accept_encoding=True)
        for name, value in self._headers.items():
            connection.putheader(name, value)
        if strange.body is not None:
            connection.putheader("Content-Type", "application/json")
            connection.putheader("Content-Length", str(len(strange.body)))
        connection.endheaders(strange.body)
        with connection.getresponse() as answer:
            found = Answer(answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read())
            if answer.will_close:
                self.close()
        return found

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def judge(name: str, statuses: set[int], strange: Strange, answer: Answer) -> str:
    """What is wrong with an answer; empty when nothing is."""
    kind = answer.headers.get("content-type", "").partition(";")[0]
    if answer.status == 200 and kind == "text/html" and not strange.target.startswith("/api/"):
        return ""  # no route's: the dashboard's page
    if answer.status not in statuses:
        return f"{name}: {answer.status} is not described: {strange} -> {answer.body[:200]!r}"
    if answer.status in {500, 502, 503} and b"An internal server error" in answer.body:
        return f"{name}: {answer.status}: {strange} -> {answer.body[:200]!r}"
    if answer.status >= 400 and kind == "application/json":
        try:
            value = json.loads(answer.body)
        except ValueError:
            return f"{name}: {answer.status} is not JSON: {strange}"
        if not isinstance(value, dict) or not (value.get("message") or value.get("error")):
            return f"{name}: {answer.status} says nothing: {strange} -> {answer.body[:200]!r}"
    return ""


PATIENCE = 60.0
"Seconds for one answer."
_ENVELOPES = ("application/json", "application/scim+json")


@dataclass
class Findings:
    """What was asked and what was wrong, one line each."""

    asked: int = 0
    wrong: dict[str, str] = field(default_factory=dict)
    statuses: dict[int, int] = field(default_factory=dict)

    def note(self, what: str, detail: str) -> None:
        self.wrong.setdefault(what, detail)


def load(document: Mapping[str, Any]) -> dict[str, Any]:
    """Schemathesis's operations by `METHOD /path`."""
    schema = schemathesis.openapi.from_dict(dict(document))
    return {
        f"{item.ok().method.upper()} {item.ok().path}": item.ok()
        for item in schema.get_all_operations()
        if isinstance(item, Ok)
    }


def ask(
    operation: Any,
    url: str,
    headers: Mapping[str, str],
    found: Findings,
    *,
    examples: int,
    known: Mapping[str, str] | None = None,
    number: int = 1,
    allowed: Iterable[int] = (),
    modes: Iterable[GenerationMode] = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE),
) -> None:
    """`examples` requests of each mode. `known` are the values of the path's parameters; None makes them up."""
    name = f"{operation.method.upper()} {operation.path}"
    documented = {int(status) for status in operation.definition.raw["responses"]} | {405}
    session = requests.Session()

    for mode in modes:
        strategy = operation.as_strategy(generation_mode=mode, path_parameters=dict(known) if known else None)

        @seed(number)
        @settings(
            max_examples=examples,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def one(case: Case[Any]) -> None:
            session.cookies.clear()
            # Nonsense is wanted everywhere but here: who nobody is gets 401, and nothing else is tried.
            case.headers = CaseInsensitiveDict({**dict(case.headers or {}), **headers})
            case.cookies = {}
            case.query = {key: value for key, value in (case.query or {}).items() if key != "coder_session_token"}
            try:
                answer = case.call(url, session, timeout=PATIENCE)
            except requests.RequestException as error:
                if not isinstance(error, requests.exceptions.InvalidHeader | requests.exceptions.InvalidURL):
                    found.note(f"{name}: {type(error).__name__}", case.as_curl_command()[:600])
                return
            _judge(
                name, documented, set(allowed), case, answer.status_code, answer.content, dict(answer.headers), found
            )

        with contextlib.suppress(Unsatisfiable):  # nothing about some operations can be wrong
            one()
    session.close()


def _judge(
    name: str,
    documented: set[int],
    allowed: set[int],
    case: Case[Any],
    status: int,
    body: bytes,
    headers: Mapping[str, Any],
    found: Findings,
) -> None:
    found.asked += 1
    found.statuses[status] = found.statuses.get(status, 0) + 1
    sent = case.as_curl_command()[:700]
    if status not in documented or (status >= 500 and status not in {502, 503} and status not in allowed):
        found.note(f"{name}: {status} {body[:200]!r}", sent)
    kind = str(headers.get("content-type", "")).partition(";")[0]
    if status >= 400 and kind in _ENVELOPES:
        try:
            value = json.loads(body)
        except ValueError:
            found.note(f"{name}: {status} is not JSON", sent)
            return
        if not isinstance(value, dict) or not {"message", "error", "detail"} & set(value):
            found.note(f"{name}: {status} without words {body[:100]!r}", sent)
