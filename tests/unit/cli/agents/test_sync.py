"""`coder exp sync` where the agent has no socket."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from coder.base.errors import CoderError
from coder.cli.agents.sync import ask_agent


@pytest.mark.parametrize("path", ["", "/run/agent.sock"])
def test_system_without_sockets_is_named(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")
    invocation: Any = SimpleNamespace(options=SimpleNamespace(socket_path=path))
    with pytest.raises(CoderError, match="no socket for scripts on this system"):
        ask_agent(invocation, "ping")
