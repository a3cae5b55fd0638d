"""App status set by a program of the workspace, forwarded with the agent's own token."""

from __future__ import annotations

from collections.abc import Mapping

from coder.base.json_types import Json
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy

FIELDS = ("app_slug", "state", "message", "uri")
MAX_ANSWER = 64 * 1024
"""Bytes (ours) of the reply: an acknowledgement, or the reason for a rejection."""


async def report_app_status(policy: DialPolicy, request: Mapping[str, Json]) -> None:
    """Send the status. Raises NetError with the server's message when it rejects the status."""
    body = {name: str(request.get(name, "")) for name in FIELDS}
    async with HttpClient(policy) as client:
        await client.request("PATCH", "/api/v2/workspaceagents/me/app-status", json=body, limit=MAX_ANSWER)
