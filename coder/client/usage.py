"""Usage reports to the server, which prevent the autostop of a workspace in use."""

from __future__ import annotations

import trio

from coder.base.json_types import JsonObject
from coder.base.log import get_logger
from coder.client.ready import ReadyAgent
from coder.net.errors import HttpError, NetError
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy

INTERVAL = 60.0
APPS = ("vscode", "jetbrains", "reconnecting-pty", "ssh")
DISABLED = "disable"

_log = get_logger("usage")


def usage_app(text: str) -> str:
    """Return the application of `--usage-app`: empty reports nothing, unknown applications count as SSH."""
    name = text.strip().lower()
    return "" if name == DISABLED else name if name in APPS else "ssh"


async def report_usage(policy: DialPolicy, target: ReadyAgent, app: str) -> None:
    """Report usage once a minute until cancelled; an empty `app` reports the workspace only. Stop if the server rejects
    it."""
    body: JsonObject = {"agent_id": str(target.agent.id), "app_name": app} if app else {}
    path = f"/api/v2/workspaces/{target.workspace.id}/usage"
    async with HttpClient(policy) as http:
        while True:
            try:
                await http.request("POST", path, json=body or None)
            except HttpError as error:
                _log.debug("the server does not accept usage reports", error=error)
                return
            except (NetError, OSError) as error:
                _log.debug("usage was not reported", error=error)
            await trio.sleep(INTERVAL)
