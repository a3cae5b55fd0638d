"""The server's certificate expires: sessions go on, new ones are refused with the cause, until it is renewed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from coder.base.errors import CoderError
from coder.base.secret import Secret
from coder.net.dial import DialPolicy
from coder.net.websocket import connect_websocket
from coder.rpc.session import open_session
from tests.kit.agents.scripted_agent import eventually, workspace_world
from tests.kit.free_ports import free_port
from tests.kit.stand_ins.certificates import Authority

PATH = "/api/v2/workspaceagents/me/rpc?version=2.10&role=agent"
NAME = "localhost"


async def test_expired_certificate_ends_no_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path)

    def issue(shift: timedelta) -> None:
        """Replace the server's files, as if so much time had passed for the certificate."""
        authority.shift = shift
        authority.issue(NAME)

    monkeypatch.setenv("SSL_CERT_FILE", authority.file)
    url, (certificate, key) = f"https://{NAME}:{(port := free_port())}", authority.issue(NAME)
    settings: dict[str, Any] = {"tls_cert_file": (certificate,), "tls_key_file": (key,), "access_url": url}
    async with workspace_world(tls_enable=True, tls_address=f"127.0.0.1:{port}", **settings) as scene:
        dial = DialPolicy(url, token=Secret(scene.token), ca_file=authority.file)

        async def is_connected() -> bool:
            return bool((await scene.agent())["status"] == "connected")

        async def access_url_report() -> Any:
            return (await scene.world.get("/api/v2/debug/health?force=true")).json()["access_url"]

        async with open_session(await connect_websocket(dial, PATH), role="client") as session:
            await eventually(is_connected)
            issue(-timedelta(days=3))
            with pytest.raises(CoderError, match="does not hold") as refused:
                await connect_websocket(dial, PATH)
            assert "the certificate has expired" in refused.value.hint
            assert "does not hold" in (await access_url_report())["error"]
            await session.ping()
            assert await is_connected()
            issue(timedelta())
            async with await connect_websocket(dial, PATH):
                assert (await access_url_report())["healthy"]
