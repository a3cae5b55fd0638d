"""Regular expressions from users: RE2, whose time is linear in the text, with a bounded pattern. Pure."""

from __future__ import annotations

import functools
from typing import Any

MAX_PATTERN = 1000
"""Maximum characters of a pattern."""


class PatternProblem(ValueError):  # noqa: N818 - says what is wrong with the pattern
    """A pattern that cannot be used; the text has the reason."""


@functools.lru_cache(maxsize=128)
def compiled(pattern: str) -> Any:
    """Return the compiled pattern, ready for `search`. Raises PatternProblem."""
    import re2  # imported late: most programs do not need it

    if len(pattern) > MAX_PATTERN:
        raise PatternProblem(f"it has {len(pattern)} characters, at most {MAX_PATTERN} are allowed")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0]
        raise PatternProblem(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from error
