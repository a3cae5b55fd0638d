"""What every service gets: the world, handed down from the composition root.

A service reads time from `clock`, never from the system; it reaches the database only through `db`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, cast
from uuid import UUID

import trio

from coder.base.clock import Clock, SystemClock
from coder.base.log import Logger, get_logger
from coder.coderd.config.settings import ServerConfig
from coder.coderd.store.engine.database import Database

if TYPE_CHECKING:
    from collections.abc import Callable

    from coder.tailnet.agent_dialer import AgentDialer

Part = TypeVar("Part")


@dataclass(slots=True)
class Context:
    """Built once by `coderd.app`; the parts that open later are set there before anybody is served."""

    config: ServerConfig
    db: Database
    nursery: trio.Nursery
    "For work that outlives its request (a worker woken, a log flushed). Cancelled at shutdown."
    access_url: str
    "The URL people and agents use, without a slash at the end."
    deployment_id: UUID
    webpush_public_key: str = ""
    "The site's VAPID key; browsers subscribe with it."
    clock: Clock = field(default_factory=SystemClock)
    log: Logger = field(default_factory=lambda: get_logger("coderd"))
    stopping: trio.Event = field(default_factory=trio.Event)
    "Set when shutdown begins: streams end themselves (WebSockets with 1001) instead of being cut."
    agent_dialer: AgentDialer | None = None
    "This server's own mesh node; None before it is open."
    parts: dict[type, object] = field(default_factory=dict)
    "Other long-lived objects by their class, see `part`."

    def part(self, kind: type[Part]) -> Part:
        """The one instance of a service object (a cache, a registry). Made on first use as `kind(self)`."""
        found = self.parts.get(kind)
        if found is None:
            made: Callable[[Context], object] = kind
            found = self.parts[kind] = made(self)
        return cast("Part", found)

    def find(self, kind: type[Part]) -> Part | None:
        """The instance of a part that not every server has; None when it is off."""
        return cast("Part | None", self.parts.get(kind))
