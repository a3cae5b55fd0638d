"""The sign-in page shows the messages that the server sends there, and no others."""

from __future__ import annotations

from coder.domain.access.credentials import SIGNED_OUT
from tests.kit.dashboard.source_modules import evaluate, needs_node


@needs_node
def test_login_page_shows_only_server_messages() -> None:
    sent = [SIGNED_OUT, "Your account is locked. Call +1 555 0100.", None]
    assert evaluate("messages.ts", "argument.map(module.knownMessage)", sent) == [SIGNED_OUT, None, None]
