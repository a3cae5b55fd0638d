"""Asks a running server whatever its own description allows, and what it does not, and notes answers that are wrong.

Wrong is: a 5xx, a status the description does not have, an error that is not the envelope. Requests come from
Schemathesis, from a seed; identifiers in paths are mostly those of real objects.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from requests.structures import CaseInsensitiveDict
from schemathesis import Case, GenerationMode
from schemathesis.core.result import Ok

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
