"""A wrong provisioner key, pre-shared key or token: the error names the one that the server refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from coder.base.secret import Secret
from coder.cli.provisioning import provisioner_daemons
from coder.provisionerd.config import Shutdown
from tests.kit.programs.command_line import run_cli
from tests.kit.server.server_in_process import running_coderd


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--key", "wrong"), ("provisioner key", "coder provisioner keys list")),
        (("--psk", "wrong"), ("--psk", "CODER_PROVISIONER_DAEMON_PSK")),
        ((), ("coder login",)),
    ],
    ids=["key", "psk", "token"],
)
async def test_refused_credential_is_named(
    flags: tuple[str, ...], expected: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run_without_signals(run: Callable[[Shutdown], Awaitable[None]], **_: object) -> None:
        await run(Shutdown())  # only the main thread receives signals

    monkeypatch.setattr(provisioner_daemons, "_run_until_signal", run_without_signals)
    async with running_coderd(first_user=True, provisioner_daemon_psk=Secret("right")) as world:
        env = {"CODER_URL": world.url, "CODER_SESSION_TOKEN": "" if flags else "wrong-token"}
        done = await run_cli(["provisionerd", "start", *flags], home=tmp_path, env=env)
    assert done.code == 1
    assert all(word in done.stderr for word in expected), done.stderr
    assert ("coder login" in done.stderr) is (not flags) and "Trace=" not in done.stderr
