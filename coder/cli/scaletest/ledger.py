"""What scale tests made and have not taken away: a file in the configuration directory, one JSON object a line.

A line is written before the request that makes the thing, and its name has a random part: so `cleanup` finds all of
it after a crash, and nothing that somebody else made, whatever that is called. What becomes of the thing is another
line, the last of its name counts: nothing that another process writes meanwhile is lost.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from coder.base.whole_file import write_whole

if sys.platform != "win32":
    import fcntl

FILE = "scaletest.jsonl"
LOCK = "scaletest.lock"
UNANSWERED_FOR = 3600.0
"""Ours: seconds after which no server nor proxy still works on a request that its client has given up."""
_NAME = re.compile(r"scaletest-[0-9a-f]{8}-[0-9]+")


@dataclass(frozen=True, slots=True)
class Made:
    """One thing, and what is known of it."""

    url: str
    "Of the deployment."
    kind: str
    "workspace or user."
    owner: str
    "Of a workspace; of a user its own name."
    name: str
    by: str = ""
    "Username of the session that asked for it; empty in lines of older versions."
    at: float = 0.0
    "When it was asked for, in Unix seconds."
    state: Literal["intended", "made", "gone"] = "intended"
    "made: the server has answered that it is there."


class Ledger:
    """Of one person on one machine. `now` says Unix seconds."""

    def __init__(self, directory: Path, url: str, now: Callable[[], float] = time.time) -> None:
        self._directory, self._url, self._now = directory, url.rstrip("/"), now
        self._path = directory / FILE

    def intend(self, kind: str, owner: str, name: str, by: str = "") -> Made:
        """From now on it is to be taken away. Raises OSError: then it must not be made."""
        made = Made(self._url, kind, owner, name, by, self._now())
        self._append(made)
        return made

    def answered(self, made: Made) -> None:
        """The server has said that it is there."""
        self._append(replace(made, state="made"))

    def forget(self, gone: Made) -> None:
        """It is not there any more, and will not be."""
        self._append(replace(gone, state="gone"))

    def of(self, kind: str, names: Collection[str] | None = None) -> list[Made]:
        """Of this deployment (and of these names), the oldest first."""
        mine = (one for one in self._all() if one.url == self._url and one.kind == kind)
        return [one for one in mine if names is None or one.name in names]

    def elsewhere(self) -> dict[str, int]:
        """How many things were made at other addresses, by their URL."""
        return dict(Counter(one.url for one in self._all() if one.url != self._url))

    def may_still_come(self, made: Made) -> bool:
        """The server may still be making what it does not show yet: it was asked lately and has never answered."""
        return made.state == "intended" and self._now() - made.at < UNANSWERED_FOR

    def compact(self) -> None:
        """Leaves out what is gone."""
        if not self._path.exists():
            return
        with self._locked() as held:
            if held:
                write_whole(self._path, "".join(_line(one) for one in self._all()))

    def _append(self, made: Made) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._locked():
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "r+b") as file:
                if file.seek(0, os.SEEK_END):
                    file.seek(-1, os.SEEK_END)
                    # A full disk may have cut the line before, which must not swallow this one.
                    file.write(b"" if file.read(1) == b"\n" else b"\n")
                file.write(_line(made).encode())

    @contextmanager
    def _locked(self) -> Iterator[bool]:
        """Nobody else writes meanwhile. False where files cannot be locked: there lines may only be added."""
        if sys.platform == "win32":
            yield False
        else:
            with os.fdopen(os.open(self._directory / LOCK, os.O_RDWR | os.O_CREAT, 0o600)) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield True

    def _all(self) -> list[Made]:
        import msgspec

        try:
            lines = self._path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return []
        found: dict[tuple[str, str, str, str], Made] = {}
        for line in lines:
            try:
                one = msgspec.json.decode(line, type=Made)
            except msgspec.DecodeError:
                continue  # cut, by a crash or a full disk, before its request was made
            if _NAME.fullmatch(one.name):
                found[one.url, one.kind, one.owner, one.name] = one
        return [one for one in found.values() if one.state != "gone"]


def _line(made: Made) -> str:
    return json.dumps(asdict(made)) + "\n"


def new_names(count: int) -> list[str]:
    """Names that nobody has."""
    run = secrets.token_hex(4)
    return [f"scaletest-{run}-{number}" for number in range(count)]
