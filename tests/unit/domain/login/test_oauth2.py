"""Secrets and redirect addresses of the OAuth2 provider, PKCE."""

from __future__ import annotations

import pytest

from coder.domain.login.oauth2 import join_secret, redirect_problem, split_secret, verifies_challenge


@pytest.mark.parametrize(
    ("uri", "fine"),
    [
        ("http://localhost:19190/cb", True),
        ("https://ide.example.com/cb?x=1", True),
        ("cursor://anysphere.cursor/callback", True),
        ("http://[::1]:1/x", True),
        ("http://example.com/cb", False),
        ("https://x/#part", False),
        ("javascript:alert(1)", False),
        ("https://", False),
        ("//host/path", False),
        ("http://[::1", False),
    ],
)
def test_redirect_addresses(uri: str, fine: bool) -> None:
    assert (redirect_problem([uri]) == "") is fine


ODD_PREFIXES = ["coder_" + sign * 10 + "_" + "b" * 40 for sign in ("\0", " ", "é", "\ufffd")]
"""Secrets refused before the database is queried: it would fail on some."""


@pytest.mark.parametrize("text", ["", "coder", "coder_a_b", "x_" + "a" * 10 + "_" + "b" * 40, "coder__", *ODD_PREFIXES])
def test_other_secrets_do_not_split(text: str) -> None:
    assert split_secret(text) is None


def test_joined_secret_splits() -> None:
    assert split_secret(join_secret("a" * 10, "b" * 40)) == ("a" * 10, "b" * 40)


@pytest.mark.parametrize(
    ("challenge", "verifier", "legacy", "fits"),
    [
        # RFC 7636 appendix B
        ("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", False, True),
        ("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXK", True, False),
        ("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "", True, False),
        ("", "", False, False),
        ("", "", True, True),
        ("", "something", True, False),
    ],
)
def test_code_requires_its_verifier(challenge: str, verifier: str, legacy: bool, fits: bool) -> None:
    assert verifies_challenge(challenge, verifier, legacy=legacy) is fits
