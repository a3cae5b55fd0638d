"""Loop that polls workspace proxies every minute, by `services/proxies/proxy_health.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coder.base.log import Logger
from coder.coderd.loops.skeleton import run_loop
from coder.coderd.services.proxies.proxy_health import check_proxies

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


async def run(ctx: Context) -> None:
    """Run until cancelled."""
    rest = ctx.config.proxy_health_interval.total_seconds()
    await run_loop(ctx, "proxy_health", turn, first_rest=rest, failed_rest=rest)


async def turn(ctx: Context, _log: Logger) -> float:
    await check_proxies(ctx)
    return ctx.config.proxy_health_interval.total_seconds()
