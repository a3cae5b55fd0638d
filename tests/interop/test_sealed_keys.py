"""Sealed keys against go-jose, the library of the original's servers and workspace proxies.

Needs `go` and access to the Go module proxy, or go-jose in its cache; skipped without them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from coder.appproxy.apps.app_tickets import KEY_FEATURE, open_key_untrusted, seal_wrapped, sealed_claims
from coder.domain.foundation.signed_tokens import SigningKey

NOW = datetime(2026, 1, 6, 9, tzinfo=UTC)
KEY = SigningKey("7", os.urandom(32))
CLAIMS = sealed_claims("id-secret", NOW, timedelta(minutes=1))

pytestmark = [pytest.mark.system, pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed")]


class OneKey:
    async def find(self, feature: str, key_id: str, /) -> SigningKey:
        assert (feature, key_id) == (KEY_FEATURE, KEY.id)
        return KEY


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("jose") / "peer"
    argv = ["go", "build", "-o", str(program), "."]
    built = subprocess.run(argv, cwd=Path(__file__).parent / "jose_peer", capture_output=True, text=True, check=False)
    if built.returncode:
        pytest.skip(f"go-jose cannot be built: {built.stderr.splitlines()[-1]}")
    return program


def said(peer: Path, text: str, *words: str) -> str:
    done = subprocess.run([peer, *words], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_peer_opens_wrapped_key(peer: Path) -> None:
    for _ in range(50):
        sealed = seal_wrapped(KEY, CLAIMS, os.urandom)
        key_id, plain = said(peer, sealed, "open", KEY.secret.hex()).split("\n", 1)
        assert (key_id, json.loads(plain)) == (KEY.id, CLAIMS)


@pytest.mark.parametrize("form", ["seal", "seal-plain"])
async def test_key_of_peer_opens(peer: Path, form: str) -> None:
    for _ in range(50):
        sealed = said(peer, json.dumps(CLAIMS), form, KEY.secret.hex(), KEY.id)
        assert await open_key_untrusted(OneKey(), NOW, sealed) == "id-secret"
