"""What is printed when a command fails."""

from __future__ import annotations

import pytest

from coder.base.errors import CoderError
from coder.cli.completion import SCRIPTS, complete
from coder.cli.failures import doing, error_text
from coder.net.errors import HttpError


def failed(*traces: str, error: CoderError) -> CoderError:
    try:
        if traces:
            with doing(traces[0]):
                raise failed(*traces[1:], error=error)
        raise error
    except CoderError as caught:
        return caught


def test_refusals_of_the_api_in_lines() -> None:
    refused = HttpError(400, "No.", "because", [{"field": "name", "detail": "taken"}])
    text = error_text(failed("create", "ask", error=refused), is_terminal=False)
    assert text.split("\n") == [
        "Trace=[create: ask: ]", "No.", "1 validation error(s) found", "\t name : taken", "because",
    ]  # fmt: skip
    gone = HttpError(404, "Not there.")
    assert error_text(gone, is_terminal=False) == "Not there."
    assert error_text(gone, is_terminal=True).startswith("Not there.\nSuggestion: Check")
    assert error_text(HttpError(401, "Who?"), is_terminal=False).endswith("'coder login'.")


def test_next_steps_are_for_people_and_for_logs() -> None:
    plain = CoderError("x", "cannot", "Do this.")
    assert error_text(plain, is_terminal=False) == "cannot"
    assert error_text(plain, is_terminal=True) == "cannot\nDo this."


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        (["tok"], ["tokens"]),
        (["tokens", "cr"], ["create"]),
        (["token", "cr"], ["create"]),
        (["list", "--outp"], ["--output"]),
        (["list", "-o", ""], ["table", "json"]),
        (["nope", ""], []),
        ([""], None),
    ],
)
def test_completion(line: list[str], offered: list[str] | None) -> None:
    found = complete(line)
    assert found == offered if offered is not None else "list" in found
    assert all("completion words" in script for script in SCRIPTS.values())
