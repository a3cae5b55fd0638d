"""Profiles on an address of their own."""

from __future__ import annotations

import pytest

from coder.base.errors import CoderError
from coder.coderd.services.telemetry.profiles import NAMES
from tests.kit.api.http_clients import http_client
from tests.kit.server.server_in_process import running_coderd


async def test_profiles_are_served() -> None:
    async with running_coderd(pprof_enable=True, pprof_address="127.0.0.1:0") as world, http_client() as client:
        base = f"http://127.0.0.1:{world.ctx.services.profiles_port}/debug/pprof"
        index = await client.get(f"{base}/")
        assert index.text.split() == list(NAMES)
        for name in NAMES:
            response = await client.get(f"{base}/{name}?seconds=0.05")
            assert response.status_code == 200 and response.text, name
        assert "MainThread" in (await client.get(f"{base}/goroutine?debug=2")).text
        folded = (await client.get(f"{base}/profile?seconds=0.05")).text.splitlines()
        assert folded and all(line.rpartition(" ")[2].isdigit() and ";" in line for line in folded)
        for path in ("/nope", "/../x", "/profile/x"):
            assert (await client.get(base + path)).status_code == 404


async def test_address_in_use_is_named() -> None:
    async with running_coderd(pprof_enable=True, pprof_address="127.0.0.1:0") as world:
        taken = f"127.0.0.1:{world.ctx.services.profiles_port}"
        with pytest.raises(CoderError, match="for profiles") as caught:
            async with running_coderd(pprof_enable=True, pprof_address=taken):
                pass
        assert "--pprof-address" in caught.value.hint
