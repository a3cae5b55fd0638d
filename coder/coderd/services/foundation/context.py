"""Dependencies of every service, passed down from the composition root.

A service reads time from `clock`, never from the system, and reaches the database only through `db`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, cast
from uuid import UUID

import trio

from coder.base.clock import Clock, SystemClock
from coder.base.log import Logger, get_logger
from coder.coderd.config.settings import ServerConfig
from coder.coderd.services.foundation.place import Place
from coder.coderd.store.engine.database import Database

if TYPE_CHECKING:
    from collections.abc import Callable

    from coder.tailnet.agent_dialer import AgentDialer

Part = TypeVar("Part")


@dataclass(slots=True)
class Context:
    """Dependencies of the services, built once by `coderd.app`. Parts that open later are set there before the first
    request.
    """

    config: ServerConfig
    db: Database
    nursery: trio.Nursery
    "Nursery for work that outlives its request (a worker woken, a log flushed). Cancelled at shutdown."
    access_url: str
    "URL that browsers and agents use, without a trailing slash."
    deployment_id: UUID
    webpush_public_key: str = ""
    "Public VAPID key of the site, which browsers subscribe with."
    clock: Clock = field(default_factory=SystemClock)
    log: Logger = field(default_factory=lambda: get_logger("coderd"))
    stopping: trio.Event = field(default_factory=trio.Event)
    "Event that is set when shutdown begins: streams close themselves (WebSockets with 1001) instead of being cut."
    agent_dialer: AgentDialer | None = None
    "Mesh node of this server; None before it is open."
    place: Place = field(default_factory=Place)
    "This process among those of the server."
    parts: dict[type, object] = field(default_factory=dict)
    "Other long-lived objects by their class, see `part`."

    def part(self, kind: type[Part]) -> Part:
        """Return the single instance of a service object (a cache, a registry). Created on first use as
        `kind(self)`.
        """
        instance = self.parts.get(kind)
        if instance is None:
            new_part: Callable[[Context], object] = kind
            instance = self.parts[kind] = new_part(self)
        return cast("Part", instance)

    def find(self, kind: type[Part]) -> Part | None:
        """Return the instance of an optional part, or None when the server runs without it."""
        return cast("Part | None", self.parts.get(kind))
