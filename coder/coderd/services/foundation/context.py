"""Dependencies of every service, passed down from the composition root.

A service reads time from `clock`, never from the system, and reaches the database only through `db`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.base.clock import Clock, SystemClock
from coder.base.log import Logger, get_logger
from coder.coderd.config.settings import ServerConfig
from coder.coderd.services.foundation.this_process import ThisProcess
from coder.coderd.store.engine.database import Database

if TYPE_CHECKING:
    # The one import upwards, for its type alone (docs/decisions/services.md).
    from coder.coderd.composition import Services
    from coder.tailnet.agent_dialer import AgentDialer


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
    process: ThisProcess = field(default_factory=ThisProcess)
    "This process among those of the server."
    services: Services = field(init=False)
    "The long-lived objects of this process, set directly after this one is built."
