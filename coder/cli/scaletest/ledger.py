"""Ledger of what scale tests created and did not yet delete: a file in the configuration directory, one JSON object per
line.

A line is written before the request that creates the resource, and the resource's name has a random part. So `cleanup`
finds all resources after a crash, and none that another user created, regardless of their names. Each state change
appends a line, and the last line of a name counts, so that concurrent writes of other processes are not lost.
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

import msgspec

from coder.base.atomic_file import write_atomically
from coder.base.private_files import open_private

if sys.platform != "win32":
    import fcntl

FILE = "scaletest.jsonl"
LOCK = "scaletest.lock"
UNANSWERED_FOR = 3600.0
"""Seconds (our choice) after which neither server nor proxy still processes a request that its client abandoned."""
_NAME = re.compile(r"scaletest-[0-9a-f]{8}-[0-9]+")


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """Created resource and its state."""

    url: str
    "URL of the deployment."
    kind: str
    "Kind of the resource: workspace or user."
    owner: str
    "Owner of a workspace; for a user, its own name."
    name: str
    by: str = ""
    "User name of the session that requested it; empty in lines of older versions."
    at: float = 0.0
    "Unix time of the request."
    state: Literal["intended", "made", "gone"] = "intended"
    "made: the server has confirmed that it exists."


class Ledger:
    """Ledger of one user on one machine. `now` returns Unix seconds."""

    def __init__(self, directory: Path, url: str, now: Callable[[], float] = time.time) -> None:
        self._directory, self._url, self._now = directory, url.rstrip("/"), now
        self._path = directory / FILE

    def record(self, kind: str, owner: str, name: str, creator: str = "") -> LedgerEntry:
        """Record a resource to delete later. Raise OSError: then it must not be created."""
        entry = LedgerEntry(self._url, kind, owner, name, creator, self._now())
        self._append(entry)
        return entry

    def answered(self, entry: LedgerEntry) -> None:
        """Record that the server confirmed the resource."""
        self._append(replace(entry, state="made"))

    def forget(self, entry: LedgerEntry) -> None:
        """Record that the resource does not exist and will not be created."""
        self._append(replace(entry, state="gone"))

    def of(self, kind: str, names: Collection[str] | None = None) -> list[LedgerEntry]:
        """Return the resources of this deployment (and of these names), the oldest first."""
        entries = (item for item in self._all() if item.url == self._url and item.kind == kind)
        return [item for item in entries if names is None or item.name in names]

    def count_elsewhere(self) -> dict[str, int]:
        """Return the number of resources at other deployments, by URL."""
        return dict(Counter(item.url for item in self._all() if item.url != self._url))

    def may_be_pending(self, entry: LedgerEntry) -> bool:
        """Return whether the server can still be creating the resource: it was requested recently without an answer."""
        return entry.state == "intended" and self._now() - entry.at < UNANSWERED_FOR

    def compact(self) -> None:
        """Rewrite the file without deleted resources."""
        if not self._path.exists():
            return
        with self._locked() as held:
            if held:
                write_atomically(self._path, "".join(_line(item) for item in self._all()))

    def _append(self, entry: LedgerEntry) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._locked():
            descriptor = open_private(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            with os.fdopen(descriptor, "r+b") as file:
                if file.seek(0, os.SEEK_END):
                    file.seek(-1, os.SEEK_END)
                    # A full disk can have cut the previous line, which must not merge with this one.
                    file.write(b"" if file.read(1) == b"\n" else b"\n")
                file.write(_line(entry).encode())

    @contextmanager
    def _locked(self) -> Iterator[bool]:
        """Lock the file against other writers. Yield False if files cannot be locked: then lines can only be
        appended."""
        if sys.platform == "win32":
            yield False
        else:
            with os.fdopen(open_private(self._directory / LOCK, os.O_RDWR | os.O_CREAT)) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield True

    def _all(self) -> list[LedgerEntry]:
        try:
            lines = self._path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return []
        entries: dict[tuple[str, str, str, str], LedgerEntry] = {}
        for line in lines:
            try:
                line_entry = msgspec.json.decode(line, type=LedgerEntry)
            except msgspec.DecodeError:
                continue  # cut by a crash or a full disk, before its request was sent
            if _NAME.fullmatch(line_entry.name):
                entries[line_entry.url, line_entry.kind, line_entry.owner, line_entry.name] = line_entry
        return [entry for entry in entries.values() if entry.state != "gone"]


def _line(entry: LedgerEntry) -> str:
    return json.dumps(asdict(entry)) + "\n"


def new_names(count: int) -> list[str]:
    """Return names that do not exist yet."""
    run = secrets.token_hex(4)
    return [f"scaletest-{run}-{number}" for number in range(count)]
