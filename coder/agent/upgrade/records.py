"""Records of programs across restarts: verdicts on bytes, and upgrades that have not lasted yet.

A program may pass every check and break after it has taken over. Its service manager then starts the old one, which
would upgrade again, forever; so an attempt is recorded before, and removed by a program that has lasted.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from coder.agent.upgrade.outcomes import UpgradeNotNowError
from coder.base.atomic_file import write_atomically
from coder.base.json_types import JsonObject

MAX_RECORDS = 20
"""Verdicts and attempts kept (ours), the latest of each."""
MAX_ATTEMPTS = 2
"""Attempts (ours) that did not last before a program is not retried for `HOLD_SECONDS`, also after each further one."""
HOLD_SECONDS = 24 * 3600.0


class Records:
    """Records of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find_refusal(self, digest: str) -> str:
        """Return the reason why a program was refused, "" if it was not."""
        for entry in self._read("refused"):
            if entry["digest"] == digest:
                return str(entry.get("reason") or "") or "the program was refused before"
        return ""

    def refuse(self, digest: str, version: str, reason: str) -> None:
        """Record a verdict, for every later program too. Raises OSError."""
        new: JsonObject = {"digest": digest, "version": version, "reason": reason, "at": time.time()}
        self._write("refused", [*self._read("refused"), new])

    def check_attempts(self, digest: str) -> None:
        """Raises UpgradeNotNowError while that program must not be retried."""
        for entry in self._read("attempts"):
            # A clock that was set back must not let them pass.
            if entry["digest"] == digest and _number(entry, "count") >= MAX_ATTEMPTS and _age(entry) < HOLD_SECONDS:
                reason = f"it took over {_number(entry, 'count'):g} times and did not last"
                raise UpgradeNotNowError(f"{reason}; it is not retried for {HOLD_SECONDS / 3600:g} h")

    def record_attempt(self, digest: str, version: str) -> None:
        """Record an attempt before it starts. Raises OSError: an attempt that cannot be recorded must not be made."""
        others = self._read("attempts")
        before = sum(_number(entry, "count") for entry in others if entry["digest"] == digest)
        new: JsonObject = {"digest": digest, "version": version, "count": int(before) + 1, "at": time.time()}
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._write("attempts", [*(entry for entry in others if entry["digest"] != digest), new])

    def mark_lasted(self, digest: str) -> None:
        """Remove the attempts of a program that has lasted. Raises OSError."""
        others = self._read("attempts")
        remaining = [entry for entry in others if entry["digest"] != digest]
        if remaining != others:
            self._write("attempts", remaining)

    def _write(self, name: str, entries: list[JsonObject]) -> None:
        write_atomically(self._folder / f"{name}.json", json.dumps({name: entries[-MAX_RECORDS:]}) + "\n")

    def _read(self, name: str) -> list[JsonObject]:
        try:
            value = json.loads((self._folder / f"{name}.json").read_text(encoding="utf-8"))[name]
            return [entry for entry in value if isinstance(entry["digest"], str)]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return []  # no records, or unreadable ones


def _number(entry: JsonObject, name: str) -> float:
    value = entry.get(name)
    return value if isinstance(value, int | float) else 0


def _age(entry: JsonObject) -> float:
    return abs(time.time() - _number(entry, "at"))
