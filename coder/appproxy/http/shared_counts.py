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


class SharedCounts:
    """Tables of processes. Create it before forking; `for_table` returns a process's own view.

    `processes` count at the same time; there are more tables, as a process that is replaced overlaps with its
    successor.
    """

    def __init__(self, processes: int, tables: int = 0) -> None:
        self.processes = processes
        self._tables = tables or processes
        tables = self._tables
        self._memory = mmap.mmap(-1, tables * ROWS * _ROW.size)
        self._own = 0

    def for_table(self, number: int) -> SharedCounts:
        """Return a view of the same memory that writes into this table, which is emptied."""
        view = SharedCounts.__new__(SharedCounts)
        view.processes, view._tables, view._memory = self.processes, self._tables, self._memory
        view._own = number % self._tables
        at = view._own * ROWS * _ROW.size
        view._memory[at : at + ROWS * _ROW.size] = bytes(ROWS * _ROW.size)
        return view

    def put(self, digest: bytes, window: int, current: int, previous: int) -> None:
        """Publish a counter of this process. `digest` has 16 bytes."""
        start = self._set_of(self._own, digest)
        at = self._row_of(start, digest)
        if at < 0:
            at = min(range(start, start + _SET, _ROW.size), key=lambda row: self._usefulness(row, window))
        _ROW.pack_into(self._memory, at, digest, window, current, previous, 0)

    def others(self, digest: bytes, window: int) -> tuple[int, int]:
        """Return the requests that the other processes counted in this window, and in the one before."""
        current = previous = 0
        for table in range(self._tables):
            if table == self._own:
                continue
            at = self._row_of(self._set_of(table, digest), digest)
            if at < 0:
                continue
            _, its_window, its_current, its_previous, _ = _ROW.unpack_from(self._memory, at)
            if its_window == window:
                current, previous = current + its_current, previous + its_previous
            elif its_window == window - 1:
                previous += its_current
        return current, previous

    def _row_of(self, start: int, digest: bytes) -> int:
        """Return where a set has the counter; -1 without it."""
        at = self._memory.find(digest, start, start + _SET)
        return at if at >= 0 and (at - start) % _ROW.size == 0 else -1

    def _usefulness(self, row: int, window: int) -> tuple[bool, int]:
        _, its_window, its_current, _, _ = _ROW.unpack_from(self._memory, row)
        return its_window + 1 >= window, its_current

    def _set_of(self, table: int, digest: bytes) -> int:
        number = int.from_bytes(digest[:4], "little") % (ROWS // _WAYS)
        return table * ROWS * _ROW.size + number * _SET
