"""How `coder ssh` starts."""

from __future__ import annotations

import subprocess
import sys
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from coder.cli import session
from coder.cli.command import parse
from coder.cli.network import ssh

COUNT = """
import gc, trio
seen = []
def run(*_):
    gc.callbacks.append(lambda phase, found: seen.append(found["generation"]) if phase == "stop" else None)
    import coder.client.link, coder.client.ready, coder.client.shell
    return 0
trio.run = run
from coder.cli.network import ssh
assert ssh._run(None) == 0
print(len(seen))
"""


def test_the_garbage_collector_leaves_the_imports_of_a_session_alone() -> None:
    found = subprocess.run([sys.executable, "-c", COUNT], check=True, capture_output=True, text=True)
    assert int(found.stdout) < 20  # 130 with Python's own thresholds


class _Chosen(Exception):  # noqa: N818 - ends the session where its link would be opened
    pass


@pytest.mark.parametrize(
    ("argv", "env", "link"),
    [
        ([], {}, "shared"),
        (["--force-new-tunnel"], {}, "own"),
        ([], {"CODER_SSH_FORCE_NEW_TUNNEL": "true"}, "own"),
        (["--force-new-tunnel=false"], {"CODER_SSH_FORCE_NEW_TUNNEL": "true"}, "shared"),
        (["--network-info-dir=/nowhere"], {}, "own"),
        (["--log-dir=/nowhere"], {}, "own"),
    ],
)
async def test_whose_tunnel_a_session_takes(
    argv: list[str], env: dict[str, str], link: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opening(name: str) -> Any:
        @asynccontextmanager
        async def open_it(*_: Any, **__: Any) -> Any:
            raise _Chosen(name)
            yield

        return open_it

    monkeypatch.setattr("coder.client.link.open_link", opening("own"))
    monkeypatch.setattr("coder.client.shared_link.open_link_for_command", opening("shared"))
    monkeypatch.setattr(session, "config_dir", lambda _invocation: "/nowhere")
    target = cast("Any", SimpleNamespace(agent=SimpleNamespace(id="a")))
    with pytest.raises(_Chosen, match=link):
        await ssh._talk(parse(ssh.SSH, ["dev", *argv], env), None, None, target)
