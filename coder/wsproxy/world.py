"""Shared state of a workspace proxy's parts, passed down from its composition root."""

from __future__ import annotations

from dataclasses import dataclass, field

import trio

from coder.appproxy.apps.authorizer import AppProxySettings
from coder.appproxy.apps.upstream import AppPool
from coder.appproxy.http.overload import OverloadSign
from coder.appproxy.http.rate_limits import RateLimits
from coder.base.clock import Clock
from coder.mesh.relay import DerpServer
from coder.tailnet.agent_dialer import AgentDialer
from coder.wsproxy.config import ProxyConfig
from coder.wsproxy.keys import KeyRing
from coder.wsproxy.metrics import ProxyMetrics
from coder.wsproxy.primary import Primary
from coder.wsproxy.registration import Registration


@dataclass(slots=True)
class ProxyWorld:
    """State of a proxy process."""

    config: ProxyConfig
    primary: Primary
    registration: Registration
    keys: KeyRing
    settings: AppProxySettings
    clock: Clock
    limits: RateLimits
    stopping: trio.Event = field(default_factory=trio.Event)
    agent_dialer: AgentDialer | None = None
    "Dialer of agents, after the node is open."
    relay: DerpServer | None = None
    "Relay, after the server sent the key of its mesh."
    metrics: ProxyMetrics = field(default_factory=ProxyMetrics)
    overload: OverloadSign = field(default_factory=OverloadSign)
    pool: AppPool = field(init=False)

    def __post_init__(self) -> None:
        self.pool = AppPool(self)

    @property
    def access_url(self) -> str:
        return self.settings.own_url
