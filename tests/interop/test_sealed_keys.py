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
MODULE = """module jose_peer

go 1.24.0

require github.com/go-jose/go-jose/v4 v4.1.3
"""
SUMS = """github.com/go-jose/go-jose/v4 v4.1.3 h1:CVLmWDhDVRa6Mi/IgCgaopNosCaHz7zrMeF9MlZRkrs=
github.com/go-jose/go-jose/v4 v4.1.3/go.mod h1:x4oUasVrzR7071A4TnHLGSPpNOm2a21K9Kf04k1rs08=
"""
PEER = r"""package main

import (
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"github.com/go-jose/go-jose/v4"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	key, err := hex.DecodeString(os.Args[2])
	must(err)
	text, err := io.ReadAll(os.Stdin)
	must(err)
	if os.Args[1] == "open" {
		algorithms, contents := []jose.KeyAlgorithm{jose.A256GCMKW}, []jose.ContentEncryption{jose.A256GCM}
		object, err := jose.ParseEncrypted(string(text), algorithms, contents)
		must(err)
		plain, err := object.Decrypt(key)
		must(err)
		fmt.Printf("%s\n%s", object.Header.KeyID, plain)
		return
	}
	options := &jose.EncrypterOptions{ExtraHeaders: map[jose.HeaderKey]interface{}{"kid": os.Args[3]}}
	if os.Args[1] == "seal" {
		options.Compression = jose.DEFLATE
	}
	encrypter, err := jose.NewEncrypter(jose.A256GCM, jose.Recipient{Algorithm: jose.A256GCMKW, Key: key}, options)
	must(err)
	object, err := encrypter.Encrypt(text)
	must(err)
	compact, err := object.CompactSerialize()
	must(err)
	fmt.Print(compact)
}
"""
"Peer: `peer open|seal|seal-plain KEY_IN_HEX [KID] < TEXT`."

pytestmark = [pytest.mark.system, pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed")]


class OneKey:
    async def find(self, feature: str, key_id: str, /) -> SigningKey:
        assert (feature, key_id) == (KEY_FEATURE, KEY.id)
        return KEY


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("jose")
    for name, text in (("go.mod", MODULE), ("go.sum", SUMS), ("main.go", PEER)):
        (folder / name).write_text(text)
    program = folder / "peer"
    built = subprocess.run(
        ["go", "build", "-o", str(program), "."], cwd=folder, capture_output=True, text=True, check=False
    )
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
