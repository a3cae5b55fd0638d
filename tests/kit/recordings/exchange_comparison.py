"""Compare the answer to a replayed exchange with the recorded one: status, headers, cookies, body, pages, endings."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from dataclasses import dataclass
from typing import Any

from tests.kit.recordings.answer_comparison import Names, differences, pick

_ALWAYS = {"x-content-type-options": "nosniff", "x-coder-build-version": "v2.34.0"}


@dataclass
class Answer:
    """A response in the form the recordings have."""

    status: int | None
    headers: dict[str, str]
    cookies: list[str]
    body: bytes = b""
    events: list[Any] | None = None
    messages: list[Any] | None = None
    ended: bool = False
    "The server ended the stream."
    close: dict[str, Any] | None = None
    "Code and reason of the end of a WebSocket."

    def json(self) -> Any:
        return json.loads(self.body)


def compare(expected: dict[str, Any], answer: Answer, names: Names) -> list[str]:
    """Status, listed headers, cookies, body or stream. Empty when equal."""
    if not _status_equal(expected, answer):
        return [f"status {expected['status']} became {answer.status} {answer.body[:200]!r}"]
    if expected["status"] == 500 and answer.status != 500:
        return []  # a value upstream's database refused; any refusal in words is better
    names.moments.clear()
    found = _header_differences(expected.get("headers") or {}, answer, names)
    for cookie in expected.get("set_cookie") or ():
        found += _cookie_differences(cookie, answer, names)
    if expected.get("events") is not None:
        found += differences(expected["events"], answer.events, names, "events")
    elif expected.get("messages") is not None:
        got = (answer.messages or [])[: len(expected["messages"])]
        found += differences(expected["messages"], got, names, "messages")
        found += _end_differences(expected, answer) if answer.status == 101 else []
    elif "body" in expected:
        found += _body_differences(expected["body"], answer, names)
    return found


def _status_equal(expected: dict[str, Any], answer: Answer) -> bool:
    if expected["status"] == 500:
        return answer.status in {400, 403, 404, 409, 500}
    return bool(expected["status"] == answer.status)


def _header_differences(expected: dict[str, str], answer: Answer, names: Names) -> list[str]:
    found = []
    if answer.status not in {101, None}:
        for name, value in _ALWAYS.items():
            if f"-{name}" not in expected and name not in expected and answer.headers.get(name) != value:
                found.append(f"header {name}: {value!r} became {answer.headers.get(name)!r}")
    for name, value in expected.items():
        if name.startswith("-"):
            if name[1:] in answer.headers:
                found.append(f"header {name[1:]}: should be absent")
            continue
        if name == "content-encoding":
            continue  # the client decides: we ask for none
        if name == "x-original-content-length":
            value = "<number>"  # of a program that is ours
        actual = answer.headers.get(name)
        if name == "content-digest":
            text = base64.b64encode(hashlib.sha256(answer.body).digest())
            value = f"sha256:{text.hex()}"  # the recording describes it in words
        if name == "vary":
            wanted, varies = _words(value) - {"accept-encoding"}, _words(actual or "") - {"accept-encoding"}
            if wanted != varies:
                found.append(f"header vary: {sorted(wanted)} became {sorted(varies)}")
            continue
        if name == "content-security-policy" and actual:
            actual = "; ".join(sorted(part.strip() for part in actual.split(";")))
        found += differences(value, actual, names, f"header {name}")
    return found


def _words(text: str) -> set[str]:
    return {part.strip().lower() for part in text.split(",")}


def _cookie_differences(expected: dict[str, Any], answer: Answer, names: Names) -> list[str]:
    for cookie in answer.cookies:
        pair, *attributes = [part.strip() for part in cookie.split(";")]
        name, _, value = pair.partition("=")
        if name != expected["name"]:
            continue
        found = differences(expected["value"], value, names, f"cookie {name}")
        plain = {part.split("=")[0] if part.startswith("Expires") else part for part in attributes}
        wanted = {part.split("=")[0] if part.startswith("Expires") else part for part in expected["attributes"]}
        return found if plain == wanted else [*found, f"cookie {name}: {sorted(wanted)} became {sorted(plain)}"]
    return [f"cookie {expected['name']}: missing"]


def _body_differences(expected: Any, answer: Answer, names: Names) -> list[str]:
    if expected == "<omitted>":
        return []
    if isinstance(expected, dict) and len(expected) == 1:
        (kind, value), *_ = expected.items()
        if kind == "$text":
            return differences(value, answer.body.decode(errors="replace"), names, "body")
        if kind == "$html":
            return _page_differences(value, answer)
        if kind == "$binary":
            return [] if answer.body else ["body: empty"]
        if kind == "$pick":
            return _pick_differences(value, answer, names)
    if expected is None and not answer.body:
        return []
    try:
        document = answer.json()
    except ValueError:
        return [f"body: no JSON: {answer.body[:120]!r}"]
    return differences(expected, document, names, "body")


_TITLE = {"title": re.compile(r"<title[^>]*>(.*?)</title>", re.S), "h1": re.compile(r"<h1[^>]*>(.*?)</h1>", re.S)}


_STAND_IN = "x"
"""The title of the page the recorded server had in place of a dashboard."""


def _page_differences(expected: dict[str, Any], answer: Answer) -> list[str]:
    """An HTML page, with the recorded title and heading where it had them."""
    if "text/html" not in answer.headers.get("content-type", ""):
        return ["body: no HTML"]
    text, found = answer.body.decode(errors="replace"), []
    for name, value in expected.items():
        match = _TITLE[name].search(text)
        got = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", match[1])).split()) if match else None
        if value not in {None, _STAND_IN} and got != value:
            found.append(f"body: {name} {value!r} became {got!r}")
    return found


def _end_differences(expected: dict[str, Any], answer: Answer) -> list[str]:
    """Who ended a stream, and with which code and reason."""
    if expected.get("ended_by") != "server":
        return []
    close, got = expected.get("close"), answer.close
    if close is None or got is None:
        return [] if answer.ended else ["stream: the server did not end it"]
    return [] if close == got else [f"stream: its end {close} became {got}"]


def _pick_differences(expected: dict[str, Any], answer: Answer, names: Names) -> list[str]:
    try:
        document = answer.json()
    except ValueError:
        return [f"body: no JSON: {answer.body[:120]!r}"]
    found = []
    for pointer, value in expected.items():
        found += differences(value, pick(pointer, document), names, f"body{pointer}")
    return found
