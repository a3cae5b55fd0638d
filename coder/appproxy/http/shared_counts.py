"""Counters of rate limits that the processes of one server share: anonymous shared memory, without locks.

Each process writes into a table of its own and reads all tables, so no two processes write to one place. A row has the
digest of a counter, its window and its two counts. A row read while it is written may be wrong once, by one request. A
table is associative in sets: a counter has a few rows by its digest, and takes over the least useful one when none is
free. Then the other processes miss that counter's requests of this process; its own counts stay exact
(`rate_limits.py` has them).
"""

from __future__ import annotations

import mmap
import struct

ROWS = 4096
"""Rows of a table, 128 KiB."""
_WAYS = 8
_ROW = struct.Struct("<16sIIII")
"""Digest, window (minutes since 1970), requests in that window, requests in the window before, unused."""
_SET = _WAYS * _ROW.size
_LAST_WINDOW = struct.Struct("<I")
"""At the beginning of a table: the last window it was written in. Idle tables are skipped by it."""


class SharedCounts:
    """Tables of processes. Create it before forking; `for_table` returns a process's own view.

    `processes` count at the same time; there are more tables, as a process that is replaced overlaps with its
    successor.
    """

    def __init__(self, processes: int, tables: int = 0) -> None:
        self.processes = processes
        self._tables = tables or processes
        tables = self._tables
        self._memory = mmap.mmap(-1, tables * _table_size())
        self._own = 0
        self._bases: tuple[int, ...] = ()
        "Beginnings of the other tables."

    def for_table(self, number: int) -> SharedCounts:
        """Return a view of the same memory that writes into this table, which is emptied."""
        view = SharedCounts.__new__(SharedCounts)
        view.processes, view._tables, view._memory = self.processes, self._tables, self._memory
        view._own = number % self._tables
        view._bases = tuple(table * _table_size() for table in range(self._tables) if table != view._own)
        at = view._own * _table_size()
        view._memory[at : at + _table_size()] = bytes(_table_size())
        return view

    def put(self, digest: bytes, window: int, current: int, previous: int) -> None:
        """Publish a counter of this process. `digest` has 16 bytes."""
        start = self._own * _table_size() + _set_of(digest)
        found = self._memory[start : start + _SET].find(digest)
        if found >= 0 and found % _ROW.size == 0:
            at = start + found
        else:
            at = min(range(start, start + _SET, _ROW.size), key=lambda row: self._usefulness(row, window))
        _ROW.pack_into(self._memory, at, digest, window, current, previous, 0)
        _LAST_WINDOW.pack_into(self._memory, self._own * _table_size(), window)

    def others(self, digest: bytes, window: int) -> tuple[int, int]:
        """Return the requests that the other processes counted in this window, and in the one before."""
        current = previous = 0
        memory, offset = self._memory, _set_of(digest)
        for base in self._bases:
            if _LAST_WINDOW.unpack_from(memory, base)[0] + 1 < window:
                continue
            start = base + offset
            # A copy is searched faster than the memory itself; this runs for every request.
            at = memory[start : start + _SET].find(digest)
            if at < 0 or at % _ROW.size:
                continue
            _, its_window, its_current, its_previous, _ = _ROW.unpack_from(memory, start + at)
            if its_window == window:
                current, previous = current + its_current, previous + its_previous
            elif its_window == window - 1:
                previous += its_current
        return current, previous

    def _usefulness(self, row: int, window: int) -> tuple[bool, int]:
        _, its_window, its_current, _, _ = _ROW.unpack_from(self._memory, row)
        return its_window + 1 >= window, its_current


def _set_of(digest: bytes) -> int:
    """Return where the set of a counter begins in each table."""
    return _ROW.size + int.from_bytes(digest[:4], "little") % (ROWS // _WAYS) * _SET


def _table_size() -> int:
    return (1 + ROWS) * _ROW.size
