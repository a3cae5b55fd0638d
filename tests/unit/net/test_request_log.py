"""`--verbose`: each request on stderr, and never a secret."""

from __future__ import annotations

import pytest

from coder.net.request_log import masked


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://x.example/api/v2/users/me", "https://x.example/api/v2/users/me"),
        ("https://x.example/a?q=owner:me&token=abc-def", "https://x.example/a?q=owner:me&token=***"),
        ("https://x.example/a?coder_session_token=abc&b=1", "https://x.example/a?coder_session_token=***&b=1"),
        ("https://x.example/a?code=1&STATE=2", "https://x.example/a?code=***&STATE=***"),
        ("https://user:pass@x.example/a", "https://***@x.example/a"),
    ],
)
def test_secrets_are_stars(url: str, shown: str) -> None:
    assert masked(url) == shown
