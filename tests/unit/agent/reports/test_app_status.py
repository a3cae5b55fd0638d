"""Status of an app from a program of the workspace to the server."""

from __future__ import annotations

import json

from coder.agent.reports.app_status import report_app_status
from coder.net.policy import DialPolicy
from tests.kit.stand_ins.scripted_http_servers import odd_server, reply


async def test_status_reaches_server() -> None:
    with odd_server() as server:
        server.answer = lambda _method, _path: reply("", status="204 No Content")
        await report_app_status(DialPolicy(server.url), {"app_slug": "chat", "state": "idle", "verb": "report"})
        assert server.asked == [("PATCH", "/api/v2/workspaceagents/me/app-status")]
        assert json.loads(server.bodies[0]) == {"app_slug": "chat", "state": "idle", "message": "", "uri": ""}
