"""What is our fault is told as that, and in words that help whoever can mend it."""

from __future__ import annotations

import errno
import json
from types import SimpleNamespace

import pytest

from coder.coderd.http.server.errors import envelope_of
from coder.coderd.services.foundation.errors import Invalid


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
        (FromTheDatabase("22021"), 400, "The request holds a value that cannot be stored."),
        (Invalid("No."), 400, "No."),
    ],
)
def test_each_fault_has_its_status(error: Exception, status: int, message: str) -> None:
    for raised in (error, ExceptionGroup("", [error])):
        found, body, _ = envelope_of(raised)
        said = json.loads(body)
        assert (found, said["message"]) == (status, message)
        assert "x" not in said.get("detail", "").split()
