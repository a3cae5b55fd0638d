"""What an agent remembers of programs, over restarts: verdicts on bytes, and upgrades that have not lasted yet.

A program may pass every check and break when it has taken over. Its service manager then starts the old one, which
would become it again, for ever; so an attempt is written down before, and struck out by a program that has lasted.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from coder.agent.upgrade.outcomes import UpgradeNotNowError
from coder.base.whole_file import write_whole

KEPT = 20
"""Ours: verdicts and attempts that are remembered, the last ones of each."""
TRIES = 2
"""Ours: attempts that did not last, after which a program is left alone for `HELD` seconds, and after each one more."""
HELD = 24 * 3600.0


class Records:
    """Of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def is_refused(self, digest: str) -> bool:
        return any(one["digest"] == digest for one in self._read("refused"))

    def refuse(self, digest: str, version: str, reason: str) -> None:
        """By every program after this one, too. Raises OSError."""
        new = {"digest": digest, "version": version, "reason": reason, "at": time.time()}
        self._write("refused", [*self._read("refused"), new])

    def check_attempts(self, digest: str) -> None:
        """Raises UpgradeNotNowError while that program is left alone."""
        for one in self._read("attempts"):
            # A clock that was put back must not let them pass.
            if one["digest"] == digest and _number(one, "count") >= TRIES and _age(one) < HELD:
                said = f"it took over {_number(one, 'count'):g} times and did not last"
                raise UpgradeNotNowError(f"{said}; it is left alone for {HELD / 3600:g} h")

    def begin(self, digest: str, version: str) -> None:
        """An attempt is made now. Raises OSError: what cannot be written down is not tried."""
        others = self._read("attempts")
        before = sum(_number(one, "count") for one in others if one["digest"] == digest)
        new = {"digest": digest, "version": version, "count": int(before) + 1, "at": time.time()}
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._write("attempts", [*(one for one in others if one["digest"] != digest), new])

    def last(self, digest: str) -> None:
        """That program has lasted. Raises OSError."""
        others = self._read("attempts")
        left = [one for one in others if one["digest"] != digest]
        if left != others:
            self._write("attempts", left)

    def _write(self, what: str, entries: list[dict[str, Any]]) -> None:
        write_whole(self._folder / f"{what}.json", json.dumps({what: entries[-KEPT:]}) + "\n")

    def _read(self, what: str) -> list[dict[str, Any]]:
        try:
            found = json.loads((self._folder / f"{what}.json").read_text(encoding="utf-8"))[what]
            return [one for one in found if isinstance(one["digest"], str)]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return []  # there is none, or nobody can say


def _number(entry: dict[str, Any], name: str) -> float:
    found = entry.get(name)
    return found if isinstance(found, int | float) else 0


def _age(entry: dict[str, Any]) -> float:
    return abs(time.time() - _number(entry, "at"))
