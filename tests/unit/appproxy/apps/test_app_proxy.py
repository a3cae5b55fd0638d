"""Reports of answered requests for applications. Their responses are in `test_apps.py`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import h11
import pytest
import trio
import trio.testing

from coder.appproxy.apps.app_proxy import AppProxy
from coder.appproxy.apps.app_refusals import AppRefusedError
from coder.appproxy.apps.authorizer import AppProxySettings

HEAD = h11.Request(method="GET", target="/@me/dev/apps/web/", headers=[("host", "proxy.test")])


async def _statuses_after_disconnect(admit: Any) -> list[int]:
    """Return the reported statuses when the visitor disconnects during admission."""

    async def no_ticket(*_: Any) -> None:
        return None

    settings = AppProxySettings("https://coder.test", "https://coder.test")
    apps = AppProxy(cast("Any", SimpleNamespace(settings=settings, admit=admit, read_ticket=no_ticket)))
    reported: list[int] = []
    apps.on_served = lambda proxied, _by_host: reported.append(proxied.status)
    near_end, far_end = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:

        async def serve() -> None:
            await apps.serve(HEAD, near_end, b"", remote_ip="127.0.0.1", secure=True, ours=())

        nursery.start_soon(serve)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    await far_end.aclose()
    return reported


async def test_answered_request_is_reported() -> None:
    async def refuse(*_: Any) -> None:
        raise AppRefusedError("not_found")

    assert await _statuses_after_disconnect(refuse) == [404]


@pytest.mark.parametrize("ends", [trio.sleep_forever, None])
async def test_client_gone_before_answer_has_no_status(ends: Any) -> None:
    async def leave(*_: Any) -> None:
        if ends is None:
            raise trio.BrokenResourceError("the browser left")
        await ends()

    assert await _statuses_after_disconnect(leave) == []
