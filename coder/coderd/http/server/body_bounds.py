"""Bounds on request bodies in memory: bytes over all requests, elements and depth of JSON.

Checked before the bytes are decoded: an object costs a hundred times its two characters. A route's declaration limits
its body (`declarations.py`); `json.py` reads it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import trio

from coder.api.base.refusals import RateLimited, TooLarge
from coder.appproxy.http.client_address import network_of

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

STRANGERS = ""
"""Account of all callers without authentication: they share one budget."""
STRANGERS_BYTES = 16 << 20
"""A quarter of a thousand bodies of the largest unauthenticated size; ordinary sign-ins are a hundred bytes."""
ADDRESS_BYTES = 1 << 20
"""Share of it for one address: sixteen addresses must use theirs before others are refused. Sixteen of the largest
bodies concurrently."""
PERSON_BYTES = 256 << 20
"""Two uploads of the largest size concurrently, which are in files."""
PERSON_HELD_BYTES = 16 << 20
"""Memory for bodies of one user (or proxy, or all agents of one user) until they have been read and decoded; further
ones wait."""
SMALL = 64 << 10
"""Bytes of a body that waits for no large one: small ones have the same amount for themselves, or a build's state on a
slow line would block every page of its sender."""
MAX_ELEMENTS = 100_000
"""Commas and opening brackets of a body. A megabyte of log lines has half of that."""
MAX_DEPTH = 200
"""Far below the recursion limit; real documents are nested about ten deep."""

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{},]', re.DOTALL)


class BodyBudget:
    """Bytes of bodies that are being received, by sender; a part of the server's context."""

    def __init__(self, ctx: Context | None = None) -> None:
        self.held: dict[str, int] = {}
        self._waiting: dict[str, _Queue] = {}
        """Waiting requests by account: only the first of an account checks for room, and is woken by its own account
        only."""

    @contextlib.contextmanager
    def sender(self, who: str, address: str = "") -> Iterator[BodyShare]:
        """Hold one request's share, returned at the end of the block; `address`: of an unauthenticated caller."""
        limits = (
            {who: PERSON_BYTES} if who else {STRANGERS: STRANGERS_BYTES, f"from {network_of(address)}": ADDRESS_BYTES}
        )
        with self._share(limits) as share:
            yield share

    @contextlib.contextmanager
    def _share(self, limits: dict[str, int]) -> Iterator[BodyShare]:
        share = BodyShare(self, limits)
        try:
            yield share
        finally:
            share.give_back()

    @contextlib.asynccontextmanager
    async def turn(self, who: str, count: int, patience: float) -> AsyncIterator[None]:
        """Reserve memory for a body of at most `count` bytes of a user, until the end of the block.

        The reservation is atomic and precedes any byte: two half-read bodies never wait for each other, and a waiting
        sender is held up by its own socket. Raises RateLimited after `patience` seconds.
        """
        account = f"small ones of {who}" if count <= SMALL else f"memory of {who}"
        if account in self._waiting or not self._has_room(account, count):
            with trio.move_on_after(patience) as scope:
                await self._wait_room(account, count)
            if scope.cancelled_caught:
                raise _too_much()
        with self._share({account: max(PERSON_HELD_BYTES, count)}) as share:
            share.take(count)
            yield

    async def _wait_room(self, account: str, count: int) -> None:
        queue = self._waiting.setdefault(account, _Queue())
        queue.length += 1
        try:
            async with queue.turn:  # in order of arrival: small bodies must not overtake a large one forever
                while not self._has_room(account, count):
                    queue.given_back = trio.Event()
                    await queue.given_back.wait()
        finally:
            queue.length -= 1
            if not queue.length:
                del self._waiting[account]

    def _has_room(self, account: str, count: int) -> bool:
        # A body larger than the whole budget has its turn alone.
        held = self.held.get(account, 0)
        return not held or held + count <= PERSON_HELD_BYTES

    def given_back(self, account: str) -> None:
        queue = self._waiting.get(account)
        if queue is not None:
            queue.given_back.set()


@dataclass(slots=True)
class _Queue:
    """Bodies of one account that wait for room."""

    turn: trio.Lock = field(default_factory=trio.Lock)
    given_back: trio.Event = field(default_factory=trio.Event)
    """Set for the first of them."""
    length: int = 0


@dataclass(slots=True)
class BodyShare:
    """Share of one request in the budget, in each of its accounts."""

    budget: BodyBudget
    limits: dict[str, int]
    size: int = 0

    def take(self, count: int) -> None:
        """Take `count` more bytes. Raises RateLimited when requests of the same account together hold too much."""
        held = {account: self.budget.held.get(account, 0) + count for account in self.limits}
        if any(held[account] > limit for account, limit in self.limits.items()):
            raise _too_much()
        self.budget.held.update(held)
        self.size += count

    def give_back(self) -> None:
        for account in self.limits:
            left = self.budget.held.get(account, 0) - self.size
            if left > 0:
                self.budget.held[account] = left
            else:
                self.budget.held.pop(account, None)
            self.budget.given_back(account)
        self.size = 0


def _too_much() -> RateLimited:
    return RateLimited(
        "Too much data is being sent concurrently.",
        "Your other requests are still being received; wait until they have completed and try again.",
    )


def check_json(raw: bytes) -> None:
    """Count elements and depth without decoding. Raises TooLarge above the bounds."""
    opened = raw.count(b"[") + raw.count(b"{")
    if opened <= MAX_DEPTH and opened + raw.count(b",") <= MAX_ELEMENTS:
        return
    elements = depth = 0
    for item in _TOKEN.finditer(raw):
        first = raw[item.start()]
        if first in b"[{":
            depth += 1
            elements += 1
        elif first in b"]}":
            depth -= 1
        elif first == 0x2C:
            elements += 1
        if depth > MAX_DEPTH or elements > MAX_ELEMENTS:
            which = f"is nested deeper than {MAX_DEPTH}" if depth > MAX_DEPTH else f"has over {MAX_ELEMENTS} elements"
            raise TooLarge("Request body too large.", f"The JSON {which}; send it in smaller requests.")
