"""Chains of causes: every function that walks one terminates, whatever the chain."""

from __future__ import annotations

import ssl
from collections.abc import Callable

import pytest

from coder.base.errors import CoderError, causes, explain_error
from coder.cli.core.failures import error_text
from coder.coderd.http.server.json import _without_frames
from coder.coderd.services.templates.archives import _disk_error
from coder.net.errors import HttpError, tls_failure


def _plain() -> CoderError:
    """Return an error raised `from` another, the usual case."""
    error, below = CoderError("x", "cannot do it"), CoderError("y", "no connection")
    error.__cause__, below.__cause__ = below, OSError("refused")
    return error


def _own_cause() -> CoderError:
    """Return an error raised by `raise error from error`."""
    error = HttpError(502, "unexpected status 502")
    error.__cause__ = error
    return error


def _circle() -> CoderError:
    error, below, last = CoderError("x", "cannot do it"), CoderError("y", "no connection"), CoderError("z", "")
    error.__cause__, below.__cause__, last.__cause__ = below, last, below
    return error


def _circle_of_contexts() -> CoderError:
    error, below = CoderError("x", "cannot do it"), OSError(None, "no connection")
    error.__context__, below.__context__ = below, error
    return error


def _deep() -> CoderError:
    first = last = CoderError("x", "0")
    for number in range(1, 5000):
        last.__cause__ = last = CoderError("x", str(number))
    return first


def _groups() -> CoderError:
    error = CoderError("x", "cannot do it")
    error.__cause__ = ExceptionGroup("several", [ValueError("one"), ExceptionGroup("more", [error, KeyError("two")])])
    return error


SHAPES = [_plain, _own_cause, _circle, _circle_of_contexts, _deep, _groups]
WALKS: dict[str, Callable[[CoderError], object]] = {
    "explain_error": explain_error,
    "error_text": lambda error: error_text(error, is_terminal=False),
    "tls_failure": lambda error: tls_failure("host", error),
    "_disk_error": _disk_error,
    "_without_frames": _without_frames,
}


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_cause_walks_terminate(walk: str, shape: Callable[[], CoderError]) -> None:
    WALKS[walk](shape())


@pytest.mark.parametrize("with_context", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_causes_yields_each_exception_once(shape: Callable[[], CoderError], with_context: bool) -> None:
    error = shape()
    found = list(causes(error, with_context=with_context))
    assert found[0] is error
    assert len({id(one) for one in found}) == len(found)


def test_causes_with_context() -> None:
    inner, cause = ssl.SSLError("inner"), ValueError("cause")
    outer, both = CoderError("x", "outer"), CoderError("y", "both")
    outer.__context__ = both.__context__ = inner
    both.__cause__ = cause
    assert list(causes(outer)) == [outer]
    assert list(causes(outer, with_context=True)) == [outer, inner]
    assert list(causes(both, with_context=True)) == [both, cause], "a cause replaces the context"


@pytest.mark.parametrize(
    ("shape", "line"),
    [
        (_plain, "cannot do it: no connection: refused"),
        (_own_cause, "unexpected status 502"),
        (_circle, "cannot do it: no connection"),
        (_circle_of_contexts, "cannot do it"),
        (_deep, "0: 1: 2: 3"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_explain_error_deduplicates_sentences(shape: Callable[[], CoderError], line: str) -> None:
    assert explain_error(shape()) == line
