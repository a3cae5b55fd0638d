"""Metrics of a daemon change when jobs begin and end, and are served at the configured address."""

from __future__ import annotations

import pytest
import trio

from coder.base.errors import CoderError
from coder.provisionerd.activity import ProvisionerActivity
from coder.provisionerd.metrics import metrics_text, serve_metrics
from tests.kit.api.http_clients import http_client


def _samples(activity: ProvisionerActivity) -> dict[str, float]:
    lines = metrics_text(activity).splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}


def test_every_family_changes() -> None:
    activity = ProvisionerActivity()
    current = 'coderd_provisionerd_jobs_current{provisioner="terraform"}'
    assert _samples(activity)[current] == 0 and _samples(activity)["coderd_provisionerd_num_daemons"] == 1
    with activity.working("a", "terraform"):
        assert _samples(activity)[current] == 1
    assert _samples(activity)[current] == 0
    activity.record("terraform", 12.5, succeeded=False)
    activity.record("terraform", 7200, succeeded=False)
    found = _samples(activity)
    labels = 'provisioner="terraform",status="failed"'
    name = "coderd_provisionerd_job_timings_seconds"
    assert found[f"{name}_sum{{{labels}}}"] == 7212.5 and found[f"{name}_count{{{labels}}}"] == 2
    bounds = {bound: found[f'{name}_bucket{{{labels},le="{bound}"}}'] for bound in ("10", "30", "3600", "+Inf")}
    assert bounds == {"10": 0, "30": 1, "3600": 1, "+Inf": 2}


async def test_listener_serves_metrics_only() -> None:
    async with trio.open_nursery() as nursery:
        (listener, *_) = await nursery.start(serve_metrics, "127.0.0.1:0", ProvisionerActivity())
        url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        async with http_client(url) as client:
            assert "coderd_provisionerd_num_daemons 1" in (await client.get("/metrics?x=1")).text
            head = await client.head("/metrics")
            assert (head.status_code, head.content) == (200, b"")
            assert (await client.get("/secrets")).status_code == 404
            assert (await client.post("/metrics")).status_code == 404
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1:http", "127.0.0.1:99999", "192.0.2.1:1"])
async def test_unusable_address_is_reported(address: str) -> None:
    with pytest.raises(CoderError, match=r"prometheus-address is not an address|cannot be served at"):
        await serve_metrics(address, ProvisionerActivity())
