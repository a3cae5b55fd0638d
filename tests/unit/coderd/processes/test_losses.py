"""Lost processes: the line of the log."""

from __future__ import annotations

import signal
from types import SimpleNamespace
from typing import Any, cast

import pytest

from coder.base.log import also as log_to
from coder.coderd.processes.children import Child
from coder.coderd.processes.losses import OUT_OF_MEMORY, Losses


@pytest.mark.parametrize(
    ("status", "killed_because", "has_hint"),
    [
        (-signal.SIGKILL, "", True),
        (-signal.SIGTERM, "", False),
        (1, "", False),
        (-signal.SIGKILL, "it stood still", False),
    ],
)
def test_unexplained_kill_names_memory(status: int, killed_because: str, has_hint: bool) -> None:
    """The supervisor's own kills have their reason."""
    ended = SimpleNamespace(
        name="api-1", pid=7, status=status, killed_because=killed_because, failure=None, began_at=0.0
    )
    ended.describe_end = lambda: Child.describe_end(cast("Child", ended))
    lines: list[dict[str, Any]] = []
    with log_to(lambda _level, _at, _name, _message, fields: lines.append(dict(fields))):
        Losses().record(cast("Child", ended), is_replaced=True)
    assert [line.get("hint") for line in lines] == [OUT_OF_MEMORY if has_hint else None]
