"""Experiments of upstream that this server does not have, though it accepts their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coder.coderd.config.settings import ServerConfig

NOT_SERVED = {"mcp-server-http": "the tools are served by `coder exp mcp server` only, not over HTTP"}
"""Reasons by name. A client takes a listed experiment for present, so these are not listed."""


def served_experiments(config: ServerConfig) -> tuple[str, ...]:
    """Return the experiments that are turned on and present."""
    return tuple(name for name in config.experiments if name not in NOT_SERVED)
