"""An OpenID Connect provider that does not answer: the log has it at the start, and a browser gets a page."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import trio

from coder.base.secret import Secret
from coder.coderd.services.login import oidc
from tests.kit.free_ports import free_port
from tests.kit.server.server_in_process import running_coderd


async def test_unreachable_provider_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    issuer = f"http://127.0.0.1:{free_port()}"
    logged = trio.Event()
    fields: dict[str, str] = {}

    def record(_message: str, **given: str) -> None:
        fields.update(given)
        logged.set()

    monkeypatch.setattr(oidc, "_log", SimpleNamespace(error=record))
    settings: dict[str, Any] = {"oidc_issuer_url": issuer, "oidc_client_id": "x", "oidc_client_secret": Secret("y")}
    async with running_coderd(first_user=True, **settings) as world:
        with trio.fail_after(60):
            await logged.wait()
        assert fields["issuer"] == issuer and "cannot be reached" in fields["reason"]
        path = "/api/v2/users/oidc/callback"
        as_page = await world.get(path, token="", headers={"Accept": "text/html,*/*"})
        assert as_page.status_code == 502 and as_page.headers["Content-Type"].startswith("text/html")
        assert "The OIDC provider cannot be reached." in as_page.text and "tell an administrator" in as_page.text
        as_json = await world.get(path, token="", headers={"Accept": "application/json"})
        assert as_json.status_code == 502 and as_json.json()["message"] == "The OIDC provider cannot be reached."
