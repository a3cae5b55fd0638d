"""Mapping of refusals to HTTP statuses, and the error envelope.

Used by the HTTP blueprints and, through the composition root, by the links before they upgrade.
"""

from __future__ import annotations

import errno

import trio
from msgspec import UNSET

from coder.api.base import codec
from coder.api.base.errors import Response as Envelope
from coder.api.base.errors import ValidationError
from coder.api.base.refusals import Conflict, Invalid, Refusal, Unavailable
from coder.base.errors import DATABASE_FULL, DATABASE_OUTAGES, OUTCOME_UNKNOWN, CoderError, causes, find_outage
from coder.base.log import STRANGERS_LINES, get_logger

STATUS = {
    "refused": 400,
    "invalid": 400,
    "csrf": 400,
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "not_acceptable": 406,
    "too_slow": 408,
    "conflict": 409,
    "gone": 410,
    "precondition": 412,
    "too_large": 413,
    "expectation_failed": 417,
    "too_early": 425,
    "precondition_required": 428,
    "rate_limited": 429,
    "failed": 500,
    "bad_gateway": 502,
    "unavailable": 503,
}
"""Refusal.kind -> status. A missing kind is our own mistake and fails as such."""

_UNSTORABLE = "A text contains a zero byte or is too long for its place, or a number is out of range."
_GONE, _TAKEN = "23503", "23505"
"""SQLSTATE of a deleted reference and of a taken key, after a concurrent change."""
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
_NO_ROOM_SQLSTATE = "53100"
_SOON = ("Retry-After", "2")
"""Header for an outage of the database: longer than a restart of a small one, shorter than a person's patience."""
_log = get_logger("http", per_minute=STRANGERS_LINES)


def envelope(refusal: Refusal) -> tuple[int, bytes, list[tuple[str, str]]]:
    """Return status, JSON body and extra headers of a refusal."""
    validations = [ValidationError(field=name, detail=detail) for name, detail in refusal.validations]
    body = Envelope(
        message=refusal.message,
        detail=refusal.detail or UNSET,
        validations=validations or UNSET,
    )
    return STATUS[refusal.kind], codec.encode(body), list(refusal.headers)


def envelope_of(error: BaseException) -> tuple[int, bytes, list[tuple[str, str]]]:
    """Return the same for any exception: one that is not a refusal is our fault, is logged, and reveals no secrets."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            if not isinstance(inner, trio.Cancelled):
                return envelope_of(inner)
    if isinstance(error, Refusal):
        return envelope(error)
    outage = find_outage(error)
    if outage and outage != DATABASE_FULL:  # the store logs it once
        text = f"The database {DATABASE_OUTAGES[outage]}."
        if any(getattr(cause, "in_doubt", False) for cause in causes(error)):
            # Without Retry-After: a client that repeats by itself might do it twice.
            return envelope(Unavailable(text, "The change may have been made. Look before you try again."))
        return envelope(Unavailable(text, "Try again in a moment.", headers=[_SOON]))
    if isinstance(error, CoderError) and error.code == OUTCOME_UNKNOWN:
        return envelope(Unavailable(f"{error.message[0].upper()}{error.message[1:]}.", error.hint))
    if outage or _is_full(error):
        _log.error("a request failed: a disk is full", error=error, where=_innermost_frames(error))
        body = Envelope(
            message="The server has no room left on its disk.", detail="Ask its administrator to free some space."
        )
        return 507, codec.encode(body), []
    if _is_data_error(error):
        return envelope(Invalid("The request contains a value that cannot be stored.", _UNSTORABLE))
    if _sqlstate(error) in {_GONE, _TAKEN}:
        # A missing reference may never have existed, without a check by us: that is our mistake, and must be found.
        note = _log.error if _sqlstate(error) == _GONE else _log.warn
        note("a request was overtaken by another", error=error, where=_innermost_frames(error))
        return envelope(
            Conflict("An object of this request was changed or taken meanwhile.", "Reload it, and try again.")
        )
    _log.error("a request failed", error=error, where=_innermost_frames(error))
    body = Envelope(message="An internal server error occurred.", detail=type(error).__name__)
    return 500, codec.encode(body), []


def _is_full(error: BaseException) -> bool:
    """Return whether our disk is full, or the database's, according to its driver."""
    return (isinstance(error, OSError) and error.errno in _NO_ROOM) or _sqlstate(error) == _NO_ROOM_SQLSTATE


def _is_data_error(error: BaseException) -> bool:
    """Return whether the caller's data is at fault. SQLSTATE class 22: a NUL in a text, a number out of range; 54000: a
    name that no index can hold."""
    return _sqlstate(error).startswith(("22", "54000"))


def _sqlstate(error: BaseException) -> str:
    return str(getattr(getattr(error, "orig", None), "sqlstate", ""))


def _innermost_frames(error: BaseException) -> str:
    """Return the innermost frames, enough to locate the line without printing values."""
    frames = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append(f"{code.co_filename.rsplit('/coder/', 1)[-1]}:{trace.tb_lineno}")
        trace = trace.tb_next
    return " ".join(frames[-6:])
