"""Requests of a session have sequential effects although writes are batched.

Seeded conversations over two files, each open three times (one of them appends), are compared with the expected
content.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from trio_asyncio import aio_as_trio

from coder.agent.ssh import sftp
from tests.unit.agent.ssh.test_server import Server, server
from tests.unit.agent.ssh.test_sftp import files

__all__ = ["server"]

STEPS, LARGEST = 150, 300_000


class Conversation:
    """Requests sent to the server, and their expected effects."""

    def __init__(self, seed: int, there: Any, folder: Path) -> None:
        self.chance, self.there, self.folder = random.Random(seed), there, folder
        self.held: dict[str, bytearray] = {"a": bytearray(), "b": bytearray()}
        self.handles: dict[str, list[Any]] = {}

    async def hold(self) -> None:
        for name in self.held:
            again = sftp._wire.FXF_WRITE | sftp._wire.FXF_READ
            opened = [("wb+", "utf-8"), (again, None), ("ab", "utf-8")]
            self.handles[name] = [await self.there.open(name, how, encoding=text) for how, text in opened]
        steps: list[Callable[[str], Awaitable[None]]] = [
            self.write,
            self.write_many,
            self.write_many,
            self.append,
            self.read,
            self.cut,
            self.look,
            self.sync,
            self.swap,
        ]
        for _ in range(STEPS):
            await self.chance.choice(steps)(self.chance.choice("ab"))
        for name, held in self.held.items():
            for handle in self.handles[name]:
                await handle.close()
            assert (self.folder / name).read_bytes() == held

    def _put(self, name: str, offset: int, data: bytes) -> None:
        held = self.held[name]
        if data:
            held.extend(bytes(max(offset - len(held), 0)))
            held[offset : offset + len(data)] = data

    async def write(self, name: str) -> None:
        offset, data = self.chance.randrange(LARGEST), self.chance.randbytes(self.chance.choice([0, 1, 5000, 70_000]))
        self._put(name, offset, data)
        await self.handles[name][self.chance.randrange(2)].write(data, offset)

    async def write_many(self, name: str) -> None:
        """Without waiting for replies; most writes follow the previous one, some overlap it."""
        offset, writes = self.chance.randrange(LARGEST), []
        for _ in range(self.chance.randrange(1, 80)):
            data = self.chance.randbytes(self.chance.choice([1, 10, 4000]))
            self._put(name, offset, data)
            writes.append(self.handles[name][self.chance.randrange(2)].write(data, offset))
            offset += len(data) if self.chance.random() < 0.9 else -self.chance.randrange(min(offset, 500) + 1)
        await asyncio.gather(*writes)

    async def append(self, name: str) -> None:
        data = self.chance.randbytes(self.chance.choice([1, 3000]))
        await self.handles[name][2].write(data, self.chance.choice([0, len(self.held[name])]))
        self.held[name].extend(data)

    async def read(self, name: str) -> None:
        offset, size = self.chance.randrange(len(self.held[name]) + 10), self.chance.randrange(1, 100_000)
        assert await self.handles[name][0].read(size, offset) == self.held[name][offset : offset + size]

    async def cut(self, name: str) -> None:
        """Truncate or extend; by the open file, or by its name."""
        size, held = self.chance.randrange(LARGEST), self.held[name]
        await (self.handles[name][1].truncate(size) if self.chance.random() < 0.5 else self.there.truncate(name, size))
        del held[size:]
        held.extend(bytes(size - len(held)))

    async def look(self, name: str) -> None:
        assert (await self.there.stat(name)).size == len(self.held[name])
        assert (await self.handles[name][0].stat()).size == len(self.held[name])

    async def sync(self, name: str) -> None:
        await self.handles[name][0].fsync()
        assert (self.folder / name).read_bytes() == self.held[name]

    async def swap(self, _name: str) -> None:
        for before, after in (("a", "between"), ("b", "a"), ("between", "b")):
            await self.there.posix_rename(before, after)
        self.held = {"a": self.held["b"], "b": self.held["a"]}
        self.handles = {"a": self.handles["b"], "b": self.handles["a"]}


@pytest.mark.parametrize("seed", range(4))
async def test_requests_run_in_order(seed: int, server: Server, tmp_path: Path) -> None:
    async def converse() -> None:
        async with files(server) as (_, there):
            await Conversation(seed, there, tmp_path).hold()

    with trio.fail_after(120):
        await aio_as_trio(converse)()
