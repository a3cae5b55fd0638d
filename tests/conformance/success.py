"""Success of an operation: a call returned its success status, and the body was compared with its shape.

For a stream (WebSocket, events, relay), the walk only checks that it opens. Messages are compared where a recorded
exchange has them; other streams are counted separately (`Outcome.opened`). A refusal never counts, however correct: a
better call is needed (`stories.py`, `machine_stories.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import httpx

from tests.conformance.scope import Operation
from tests.conformance.shapes import operation_of, problems_of
from tests.kit.recordings.exchange_replay import load_area
from tests.kit.recordings.recorded_areas import AREAS

OTHERWISE: dict[str, frozenset[int]] = {
    # the document is wrong: the recorded permission matrix and the release's own handlers have these
    "DELETE /api/v2/organizations/{organization}/members/roles/{roleName}": frozenset({204}),
    "GET /api/v2/applications/auth-redirect": frozenset({303, 307}),
    "GET /api/v2/users/oauth2/github/callback": frozenset({303, 307}),
    "POST /api/v2/users/{user}/webpush/test": frozenset({204}),
    # requested with a handshake, whatever status the document has
    "GET /api/v2/debug/ws": frozenset({101}),
    "GET /derp": frozenset({101}),
}
_WITHOUT_BODY = frozenset({204, 302, 303, 304, 307})


@dataclass
class Outcome:
    """Results of one operation."""

    operation: Operation
    implemented: bool = True
    problems: list[str] = field(default_factory=list)
    succeeded: bool = False
    "Whether a call returned the documented or recorded success."
    checked: bool = False
    "Whether its body was compared with a shape, or has none."
    opened: bool = False
    "Whether a stream opened whose messages were not compared."
    refusal: str = ""
    "Response of the last valid call that did not succeed."

    @property
    def valid(self) -> bool:
        return self.implemented and self.succeeded and (self.checked or self.opened) and not self.problems

    def mark(self) -> str:
        if not self.implemented:
            return "MISSING"
        if self.problems:
            return "wrong"
        if self.valid:
            return "ok"
        return "unproved"

    def why(self) -> str:
        """Reason why an operation is not valid, for the report."""
        parts = [*self.problems, "" if self.succeeded else self.refusal]
        if self.succeeded and not self.checked and not self.opened:
            parts.append("nothing is known of its body")
        return "; ".join(part for part in parts if part)


def successes(operation: Operation) -> set[int]:
    """Return the documented or recorded success statuses."""
    statuses = {*operation.statuses, *OTHERWISE.get(operation.name, ()), *_recorded().get(operation.name, ())}
    if operation.upgrades:
        statuses.add(101)
    return statuses or {200, 201, 202, 204}


def judge(outcome: Outcome, response: httpx.Response) -> None:
    """Record the response to a valid call."""
    if response.status_code not in successes(outcome.operation):
        outcome.refusal = f"{response.status_code} {response.text[:160]}"
        return
    outcome.succeeded = True
    if is_stream(response):
        outcome.checked = outcome.checked or outcome.operation.name in recorded_streams()
        outcome.opened = not outcome.checked
        return
    problems = _body_problems(outcome.operation, response)
    outcome.checked = outcome.checked or problems is not None
    outcome.problems += [f"shape: {text}" for text in (problems or ())[:3]]


def _body_problems(operation: Operation, response: httpx.Response) -> list[str] | None:
    """Return the faults of a body; None when it has an undescribed part."""
    kind = response.headers.get("content-type", "")
    if response.status_code in _WITHOUT_BODY or (response.status_code == 202 and not response.content):
        return []
    if not response.content:
        return ["a body became nothing"] if operation.response else []
    if "json" not in kind:
        # pages, archives, profiles and texts of other programs: only their presence and media type are checked
        return [f"JSON became {kind}"] if operation.response else []
    return problems_of(operation, response.json())


def is_stream(response: httpx.Response) -> bool:
    return response.status_code == 101 or "event-stream" in response.headers.get("content-type", "")


@cache
def recorded_streams() -> frozenset[str]:
    """Return the operations with messages in a recorded exchange; the replay compares them one by one."""
    lines = (line for area in AREAS for line in load_area(area) if line["response"].keys() & {"messages", "events"})
    operations = (operation_of(line["request"]["method"], line["request"]["path"]) for line in lines)
    return frozenset(operation.name for operation in operations if operation is not None)


_seen: dict[str, set[int]] = {}


def _recorded() -> dict[str, set[int]]:
    """Return the recorded success statuses by operation."""
    if not _seen:
        for line in (line for area in AREAS for line in load_area(area)):
            operation, status = (
                operation_of(line["request"]["method"], line["request"]["path"]),
                line["response"]["status"],
            )
            if operation is not None and (status or 500) < 400:
                _seen.setdefault(operation.name, set()).add(status)
    return _seen
