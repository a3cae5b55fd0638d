"""A value that is made from files, and made again after they have changed: certificates, which are renewed in place."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Generic, TypeAlias, TypeVar

from coder.base.errors import CoderError

T = TypeVar("T")
_State: TypeAlias = tuple[tuple[str, tuple[int, int, int] | None], ...]
"""Name, and inode, size and time of change, of each file; None for one that is missing."""


class FromFiles(Generic[T]):
    """The value that `make` returns; `files` returns the names of the files that it reads, and `what` is its name.

    Raises the errors of `make`, but only at first: a change that cannot be used, because half of a pair was replaced or
    a file is not yet whole, is logged, and the former value stays until the next change.
    """

    def __init__(self, what: str, files: Callable[[], Iterable[str]], make: Callable[[], T]) -> None:
        self._what, self._files, self._make = what, files, make
        self._state = self._read_state()
        self._value = make()

    def get(self) -> T:
        """Return the value of the files as they are now."""
        state = self._read_state()
        if state != self._state:
            self._state = state
            self._make_again()
        return self._value

    def _make_again(self) -> None:
        # Read late: every command reads this module, and few read files again.
        from coder.base.log import get_logger

        log = get_logger("files")
        try:
            self._value = self._make()
        except CoderError as error:
            log.warn("changed files cannot be used; what they had before stays", what=self._what, error=error)
        else:
            log.info("changed files were read again", what=self._what)

    def _read_state(self) -> _State:
        return tuple((name, _state_of(name)) for name in self._files() if name)


def _state_of(name: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(name)  # noqa: PTH116 - pathlib costs more than this, and short commands come here
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
