"""The sign-in page knows what the server sends there, and shows nothing else."""

from __future__ import annotations

from coder.coderd.services.access.credentials import SIGNED_OUT
from tests.kit.paths import ROOT


def test_the_server_s_message_is_known() -> None:
    assert f'"{SIGNED_OUT}"' in (ROOT / "coder/dashboard/src/features/session/messages.ts").read_text()
