"""Regular expressions from users: RE2, whose time is linear in the text, with a bounded pattern. Pure."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

MAX_PATTERN = 1000
"""Maximum characters of a pattern."""


class Match(Protocol):
    """Match of the RE2 library, in the form of `re.Match`."""

    @property
    def re(self) -> Pattern: ...
    def group(self, group: int | str = 0, /) -> str | None: ...
    def groups(self) -> tuple[str | None, ...]: ...


class Pattern(Protocol):
    """Compiled pattern of the RE2 library, in the form of `re.Pattern`."""

    @property
    def groups(self) -> int: ...
    @property
    def groupindex(self) -> Mapping[str, int]: ...
    def search(self, text: str, /) -> Match | None: ...
    def fullmatch(self, text: str, /) -> Match | None: ...
    def finditer(self, text: str, /) -> Iterator[Match]: ...
    def sub(self, by: Callable[[Match], str], text: str, /) -> str: ...


class PatternProblem(ValueError):  # noqa: N818 - says what is wrong with the pattern
    """A pattern that cannot be used; the text has the reason."""


@functools.lru_cache(maxsize=128)
def compiled(pattern: str) -> Pattern:
    """Return the compiled pattern, ready for `search`. Raises PatternProblem."""
    import re2  # imported late: most programs do not need it

    if len(pattern) > MAX_PATTERN:
        raise PatternProblem(f"it has {len(pattern)} characters, at most {MAX_PATTERN} are allowed")
    options = re2.Options()
    options.log_errors = False
    try:
        result: Pattern = re2.compile(pattern, options)
        return result
    except re2.error as error:
        reason = error.args[0]
        raise PatternProblem(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from error
