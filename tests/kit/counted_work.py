"""What a request costs by which a stranger could tell two answers apart: statements and hashes, counted, not timed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from quart import has_request_context, has_websocket_context

from coder.coderd.services.access import passwords
from coder.coderd.store.engine.database import Database


class _CountingTx:
    """A transaction that writes down what is asked of it."""

    def __init__(self, tx: Any, work: Counter[str], name: str) -> None:
        self._tx, self._work, self._name = tx, work, name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    async def execute(self, *args: Any, **rest: Any) -> Any:
        self._work[f"statements of {self._name}"] += 1
        return await self._tx.execute(*args, **rest)


def count_work(database: Database, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts from now on what views do; what the server does by itself is left out. Clear it before each request."""
    work: Counter[str] = Counter()

    def counting(original: Any) -> Any:
        async def asked(fn: Any, *args: Any, **rest: Any) -> Any:
            if not (has_request_context() or has_websocket_context()):
                return await original(fn, *args, **rest)
            name = getattr(fn, "__name__", "work")
            work[f"transactions of {name}"] += 1

            async def counted(tx: Any, *args: Any, **rest: Any) -> Any:
                return await fn(_CountingTx(tx, work, name), *args, **rest)

            return await original(counted, *args, **rest)

        return asked

    monkeypatch.setattr(database, "read", counting(database.read))
    monkeypatch.setattr(database, "run", counting(database.run))
    verify = passwords._verify

    def verified(hashed: str, password: str) -> bool:
        work["password hashes"] += 1
        return verify(hashed, password)

    monkeypatch.setattr(passwords, "_verify", verified)
    return work
