"""Our own faults are reported as such, in words for the administrator."""

from __future__ import annotations

import errno
import json
from types import SimpleNamespace

import asyncpg
import pytest

from coder.api.base.refusals import Invalid
from coder.appproxy.http import errors
from coder.appproxy.http.errors import envelope_of
from coder.coderd.store.engine.availability import DatabaseAwayError
from coder.coderd.store.engine.errors import OutcomeUnknownError


class FromTheDatabase(Exception):  # noqa: N818 - as SQLAlchemy's, which carries the driver's
    def __init__(self, state: str) -> None:
        super().__init__(state)
        self.orig = SimpleNamespace(sqlstate=state)


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (OSError(errno.ENOSPC, "x"), 507, "The server has no room left on its disk."),
        (OSError(errno.EDQUOT, "x"), 507, "The server has no room left on its disk."),
        (FromTheDatabase("53100"), 507, "The server has no room left on its disk."),
        (OSError(errno.EIO, "x"), 500, "An internal server error occurred."),
        (FromTheDatabase("53200"), 500, "An internal server error occurred."),
        (FromTheDatabase("22021"), 400, "The request contains a value that cannot be stored."),
        (FromTheDatabase("54000"), 400, "The request contains a value that cannot be stored."),
        (FromTheDatabase("23503"), 409, "An object of this request was changed or taken meanwhile."),
        (FromTheDatabase("23505"), 409, "An object of this request was changed or taken meanwhile."),
        (FromTheDatabase("23502"), 500, "An internal server error occurred."),
        (FromTheDatabase("54001"), 500, "An internal server error occurred."),
        (DatabaseAwayError(OSError("('10.0.0.5', 5432)")), 503, "The database does not answer."),
        (DatabaseAwayError(asyncpg.DiskFullError()), 507, "The server has no room left on its disk."),
        (DatabaseAwayError(asyncpg.OutOfMemoryError()), 503, "The database has no memory left."),
        (DatabaseAwayError(asyncpg.TooManyConnectionsError()), 503, "The database accepts no more connections."),
        (DatabaseAwayError(asyncpg.LockNotAvailableError()), 503, "The database is busy with other work."),
        (DatabaseAwayError(asyncpg.exceptions.PostgresIOError()), 503, "The database cannot read or write its disk."),
        (Invalid("No."), 400, "No."),
    ],
)
def test_each_fault_has_its_status(error: Exception, status: int, message: str) -> None:
    for raised in (error, ExceptionGroup("", [error])):
        found, body, headers = envelope_of(raised)
        assert ("Retry-After" in dict(headers)) == (found == 503)
        content = json.loads(body)
        assert (found, content["message"]) == (status, message)
        assert "x" not in content.get("detail", "").split()


def test_doubtful_change_is_not_to_be_repeated_blindly() -> None:
    status, body, headers = envelope_of(DatabaseAwayError(ConnectionResetError(), in_doubt=True))
    assert (status, headers) == (503, [])
    assert "may have been made" in json.loads(body)["detail"]
    for raised in (OutcomeUnknownError(), ExceptionGroup("", [OutcomeUnknownError()])):
        status, body, headers = envelope_of(raised)
        assert (status, headers) == (503, [])
        assert json.loads(body)["message"] == "The database does not tell whether the change was made."


@pytest.mark.parametrize(("state", "level"), [("23503", "error"), ("23505", "warn"), ("23502", "error")])
def test_missing_reference_is_logged_as_error(state: str, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing row may never have existed: a check is missing. A taken name is not our mistake."""
    logged: list[str] = []
    log = {name: lambda *_, name=name, **__: logged.append(name) for name in ("error", "warn")}
    monkeypatch.setattr(errors, "_log", SimpleNamespace(**log))
    envelope_of(FromTheDatabase(state))
    assert logged == [level]
