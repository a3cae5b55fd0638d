"""Replay the recorded exchanges of one area against a running server and report the differences.

    report = await replay_area(world, "users")
    report.mismatches  # {n: ["/body/…: … became …"]}

Lines are sent in order, because they build on each other. `{idp_url}` needs a stand-in identity provider, `agents`
a running agent: their areas are for callers who bring these (`names`).
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit
from uuid import uuid4

import httpx
import trio
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)

from coder.base.config import Inputs
from coder.base.secret import Secret
from coder.coderd.config.options import OPTIONS
from coder.coderd.config.reading import server_config
from coder.coderd.config.settings import SECRETS
from tests.kit.api.http_clients import event_stream, http_client
from tests.kit.recordings.answer_comparison import Names, pick
from tests.kit.recordings.exchange_comparison import Answer, compare
from tests.kit.recordings.exchange_requests import build_request

EXCHANGES = Path(__file__).resolve().parents[2] / "data" / "api" / "recorded" / "exchanges"
POLL_SECONDS = 60.0
STREAM_SECONDS = 60.0
OFFERED: dict[str, dict[int, str]] = {
    "deployment": {
        41: "says what is entitled, and nothing was; here everything is",
        43: "says what is entitled, and nothing was; here everything is",
    },
    "provisioners": {53: "refuses an external daemon, which a licence would have let in"},
    "templates": {
        58: "refuses a level of sharing ports, which a licence would have taken",
        72: "takes three times to live and keeps none of them; here they are kept",
        73: "takes days of required stops and keeps none; here they are kept",
        74: "takes the active version's being required and does not keep it; here it is kept",
        79: "shows the templates of 72 to 74 without what is kept here",
        80: "shows the templates of 72 to 74 without what is kept here",
        81: "shows the templates of 72 to 74 without what is kept here",
        117: "shows the templates of 72 to 74 without what is kept here",
        129: "takes a time to live after failures and does not keep it; here it is kept",
        130: "takes the active version's being required and does not keep it; here it is kept",
        131: "takes a message of deprecation and does not keep it; here it is kept",
        133: "shows the settings of 129 to 131, and takes days for starts that it does not keep",
        134: "shows the settings of 129 to 133, and takes a refusal of starts that it does not keep",
        135: "shows the settings of 129 to 134 as they were",
        137: "shows the settings of 129 to 134 as they were",
        138: "shows the settings of 129 to 134 as they were",
        140: "shows the settings of 129 to 134 as they were",
    },
}
"""Lines treated as if they said `licence`: only that the route answers is compared. Each has its reason."""
LICENCE = "refused for want of a licence; here it works"


@dataclass
class Report:
    """The result of one area."""

    area: str
    total: int = 0
    mismatches: dict[int, list[str]] = field(default_factory=dict)
    wrong_status: set[int] = field(default_factory=set)
    "Of the mismatches, those whose status differs already."
    excused: dict[int, str] = field(default_factory=dict)
    "Lines that only show that a route exists, with the reason; no match."
    successes: list[tuple[str, str]] = field(default_factory=list)
    "Method and path of good answers that equal the recorded one."

    @property
    def licence(self) -> int:
        return len(self.excused)

    @property
    def matched(self) -> int:
        return self.total - len(self.mismatches) - len(self.excused)

    def lines(self) -> list[str]:
        """Text for people."""
        excuse = f", {len(self.excused)} excused" if self.excused else ""
        out = [f"{self.area}: {self.matched} of {self.total} match{excuse}"]
        for number, found in sorted(self.mismatches.items()):
            out.append(f"  {number}: " + "; ".join(found[:4]))
        return out


@dataclass(frozen=True)
class Recordings:
    """A folder of recorded exchanges: AREA.jsonl, and areas.json where the server's options are others than ours."""

    folder: Path
    within: bool = False
    "The lines fit between those of our own folder by their numbers, and need what these bind."

    def areas(self) -> tuple[str, ...]:
        return tuple(sorted(path.stem for path in self.folder.glob("*.jsonl")))

    def own(self, area: str) -> list[dict[str, Any]]:
        """The folder's lines, without those they fit between."""
        return [json.loads(line) for line in (self.folder / f"{area}.jsonl").read_text().splitlines() if line]

    def lines(self, area: str) -> list[dict[str, Any]]:
        found = self.own(area)
        if not self.within:
            return found
        numbers = {line["n"] for line in found}
        around = [line for line in OURS.own(area) if line["n"] not in numbers]
        return sorted([*around, *found], key=lambda line: line["n"])

    def settings(self, area: str) -> dict[str, Any]:
        for folder in (self.folder, EXCHANGES):
            file = folder / "areas.json"
            found: dict[str, dict[str, Any]] = json.loads(file.read_text()) if file.exists() else {}
            if area in found:
                return dict(found[area])
        return {"server": {}, "rate_limits": False}


OURS = Recordings(EXCHANGES)


def load_area(area: str) -> list[dict[str, Any]]:
    return OURS.lines(area)


def area_settings(area: str) -> dict[str, Any]:
    """Server options of an area: environment variables and whether rate limits are on."""
    return OURS.settings(area)


def server_settings(area: str, idp_url: str = "", recordings: Recordings = OURS) -> dict[str, Any]:
    """An area's server options as attributes of `ServerConfig`."""
    found = recordings.settings(area)
    found["server"] = {name: value.replace("{idp_url}", idp_url) for name, value in found["server"].items()}
    config = server_config(Inputs(env=found["server"]), Path("/nonexistent"))
    resolved = config.resolved
    assert resolved is not None
    chosen = {option.name for option in OPTIONS if option.env in found["server"]}
    settings: dict[str, Any] = {
        name: Secret(resolved.text(name)) if name in SECRETS else resolved[name] for name in chosen
    }
    settings["external_auth_providers"] = config.external_auth_providers
    settings["dangerous_disable_rate_limits"] = not found["rate_limits"]
    # off in every area, says the recordings' README
    settings |= dict.fromkeys(
        ("oauth2_github_default_provider_enable", "external_auth_github_default_provider_enable"), False
    )
    return settings


Before = Callable[[int, Names], Awaitable[None]]
"""Called before each line with its number: starts and stops what lines need beside the server."""


async def replay_area(
    url: str,
    area: str,
    names: Mapping[str, str] | None = None,
    before: Before | None = None,
    recordings: Recordings = OURS,
) -> Report:
    """Sends every line of `area` to the server at `url` (its access URL); reports the folder's own lines."""
    parts = urlsplit(url)
    table = Names(
        {
            "access_url": url,
            "access_host": parts.netloc,
            "access_port": str(parts.port or (443 if parts.scheme == "https" else 80)),
            "access_url_escaped": quote(url, safe=""),
            "pty.id": str(uuid4()),
            **(names or {}),
        }
    )
    report, around = Report(area), Report(area)
    own = {line["n"] for line in recordings.own(area)}
    async with http_client(url, follow_redirects=False) as client:
        for line in recordings.lines(area):
            if before is not None:
                await before(line["n"], table)
            await _replay_line(client, line, table, report if line["n"] in own else around)
    return report


async def _replay_line(client: httpx.AsyncClient, line: dict[str, Any], names: Names, report: Report) -> None:
    number = line["n"]
    report.total += 1
    if "wait_s" in line:
        await trio.sleep(line["wait_s"])
    try:
        answer = await _ask(client, line, names)
    except KeyError as error:
        report.mismatches[number] = [f"{error} was never bound"]
        report.wrong_status.add(number)
        return
    except (httpx.HTTPError, OSError, trio.BrokenResourceError) as error:
        report.mismatches[number] = [f"no answer: {error!r}"]
        report.wrong_status.add(number)
        return
    _bind(line.get("bind") or {}, answer, names)
    if line.get("licence") or number in OFFERED.get(report.area, ()):
        missing = answer.status == 404 and b"Route not found" in answer.body
        if missing or answer.status == 405 or (answer.status or 500) >= 500:
            report.mismatches[number] = [f"the route is missing: {answer.status}"]
            report.wrong_status.add(number)
        else:
            report.excused[number] = OFFERED.get(report.area, {}).get(number, LICENCE)
        return
    found = compare(_cut_to_sample(line, answer), answer, names)
    if found:
        report.mismatches[number] = found
        if found[0].startswith("status "):
            report.wrong_status.add(number)
    elif (answer.status or 500) < 400:
        report.successes.append((line["request"]["method"], line["request"]["path"]))


def _cut_to_sample(line: dict[str, Any], answer: Answer) -> dict[str, Any]:
    """The recorded response; where only a sample of its lists was kept, as many times as there is something."""
    response: dict[str, Any] = line["response"]
    body = response.get("body")
    if not line["note"].endswith(": sample") or not isinstance(body, dict):
        return response
    got = answer.json()
    repeated = {
        name: value * len(got.get(name) or ()) if isinstance(value, list) and len(value) == 1 else value
        for name, value in body.items()
    }
    return {**response, "body": repeated}


async def _ask(client: httpx.AsyncClient, line: dict[str, Any], names: Names) -> Answer:
    request = line["request"]
    poll = line.get("poll")
    if poll is None:
        return await _send(client, request, line["response"], names)
    until = poll["until"] if isinstance(poll["until"], list) else [poll["until"]]
    wanted = names.fill_all(until)
    # An id of the recorded deployment never comes here: then the wait is for the recorded answer itself.
    recorded = pick(poll["pointer"], line["response"].get("body"))
    by_answer = isinstance(recorded, str) and recorded.startswith("{") and recorded not in until
    answer = Answer(None, {}, [])
    with trio.move_on_after(POLL_SECONDS):
        while True:
            answer = await _send(client, request, line["response"], names)
            try:
                if pick(poll["pointer"], answer.json()) in wanted:
                    break
            except ValueError:
                pass
            if by_answer and not compare(line["response"], answer, deepcopy(names)):
                break
            await trio.sleep(0.1)
    return answer


# ---- sending


async def _send(client: httpx.AsyncClient, request: dict[str, Any], expected: dict[str, Any], names: Names) -> Answer:
    path, headers, content = build_request(request, names)
    if request.get("upgrade") == "websocket":
        return await _websocket(client, path, headers, request, expected, names)
    if expected.get("events") is not None:
        return await _event_stream(client, path, headers, len(expected["events"]))
    response = await client.request(request["method"], path, headers=headers, content=content)
    client.cookies.clear()  # every line says itself which cookies it sends
    return _answer(response)


def _answer(response: httpx.Response) -> Answer:
    headers = {name.lower(): response.headers[name] for name in response.headers}
    return Answer(response.status_code, headers, response.headers.get_list("set-cookie"), response.content)


async def _event_stream(client: httpx.AsyncClient, path: str, headers: dict[str, str], wanted: int) -> Answer:
    events: list[Any] = []
    answer = Answer(None, {}, [])
    with trio.move_on_after(STREAM_SECONDS):
        async with event_stream(str(client.base_url), path, headers) as stream:
            head = stream.head.headers
            answer = Answer(
                stream.head.status_code, {name.lower(): head[name] for name in head}, head.get_list("set-cookie")
            )
            if answer.status != 200:
                answer.body = await stream.body()
                return answer
            name = ""
            while len(events) < wanted and (text := await stream.line()) is not None:
                if text.startswith("event: "):
                    name = text[7:]
                elif text.startswith("data: "):
                    events.append({"event": name, "data": json.loads(text[6:])})
                elif text == "" and name == "ping" and (not events or events[-1]["event"] != "ping"):
                    events.append({"event": "ping"})
    answer.events = events
    return answer


async def _websocket(
    client: httpx.AsyncClient,
    path: str,
    headers: dict[str, str],
    request: dict[str, Any],
    expected: dict[str, Any],
    names: Names,
) -> Answer:
    host, port = client.base_url.host, client.base_url.port
    answer = Answer(None, {}, [], messages=[])
    stream = await trio.open_tcp_stream(host, port or 80)
    connection = WSConnection(ConnectionType.CLIENT)
    extra = [(name.encode(), value.encode()) for name, value in headers.items() if name.lower() != "host"]
    async with stream:
        await stream.send_all(connection.send(Request(host=f"{host}:{port}", target=path, extra_headers=extra)))
        with trio.move_on_after(STREAM_SECONDS):
            while await _websocket_step(stream, connection, answer, request, expected, names):
                pass
    return answer


async def _websocket_step(
    stream: trio.SocketStream,
    connection: WSConnection,
    answer: Answer,
    request: dict[str, Any],
    expected: dict[str, Any],
    names: Names,
) -> bool:
    """Reads once; False when the conversation is over."""
    data = await stream.receive_some()
    connection.receive_data(bytes(data) or None)
    assert answer.messages is not None
    for event in connection.events():
        if isinstance(event, AcceptConnection):
            answer.status = 101
            for message in request.get("send") or ():
                if isinstance(message, dict) and set(message) == {"$binary_json"}:
                    data = json.dumps(names.fill_all(message["$binary_json"])).encode()
                    await stream.send_all(connection.send(BytesMessage(data)))
                else:
                    await stream.send_all(connection.send(TextMessage(json.dumps(names.fill_all(message)))))
        elif isinstance(event, RejectConnection):
            answer.status = event.status_code
            answer.headers = {name.decode().lower(): value.decode() for name, value in event.headers}
            if not event.has_body:
                return False
        elif isinstance(event, RejectData):
            answer.body += event.data
            if event.body_finished:
                return False
        elif isinstance(event, TextMessage | BytesMessage) and event.message_finished:
            answer.messages.append(_message(event.data))
        elif isinstance(event, CloseConnection):
            answer.ended, answer.close = True, {"code": int(event.code), "reason": event.reason or ""}
            return False
    if answer.status == 101 and len(answer.messages) >= len(expected.get("messages") or ()):
        return expected.get("ended_by") == "server" and bool(data)
    if not data:
        answer.ended = True
    return bool(data)


def _message(data: Any) -> Any:
    text = data if isinstance(data, str) else bytes(data).decode(errors="replace")
    try:
        return json.loads(text)
    except ValueError:
        return text


# ---- comparing


def _bind(wanted: dict[str, str], answer: Answer, names: Names) -> None:
    for name, source in wanted.items():
        value = _bound_value(source, answer)
        if value is None:
            continue
        names.bound[name] = value
        if name.startswith("token."):
            names.bound["key." + name[6:]] = value.split("-")[0]
            if name == "token.admin":
                names.bound["bad.secret"] = value.split("-")[0] + "-" + "B" * 22


def _bound_value(source: str, answer: Answer) -> str | None:
    kind, _, rest = source.partition(":")
    if kind == "cookie":
        for cookie in answer.cookies:
            key, _, value = cookie.split(";")[0].partition("=")
            if key == rest:
                return value
        return None
    if kind == "header":
        return answer.headers.get(rest.lower())
    if kind == "location":
        found = parse_qs(urlsplit(answer.headers.get("location", "")).query).get(rest)
        return found[0] if found else None
    try:
        document = answer.json()
    except ValueError:
        return None
    if kind == "tfstate":
        return _state_value(document, rest)
    value = pick(source, document)
    return None if value is None else str(value)


def _state_value(state: Any, where: str) -> str | None:
    kind, name, attribute = where.split(".", 2)
    for item in state.get("resources", ()):
        if item.get("type") == kind and item.get("name") == name:
            return str(item["instances"][0]["attributes"].get(attribute))
    return None
