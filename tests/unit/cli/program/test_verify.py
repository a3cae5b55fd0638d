"""`coder verify`: exit codes, JSON, and what its errors say."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from coder.base.errors import CoderError
from coder.base.release import pinned_keys
from coder.cli.main import main
from coder.cli.program.verify import public_keys
from tests.kit.paths import ROOT

sys.path.insert(0, str(ROOT / "build"))
from release.keys import ReleaseKey

KEY, OTHER = (ReleaseKey(Ed25519PrivateKey.from_private_bytes(seed * 32)) for seed in (b"\1", b"\2"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "coder").write_bytes(b"program")
    (tmp_path / "coder.minisig").write_text(KEY.minisign(b"program", "coder 2.34.0"))
    (tmp_path / "release.pub").write_text(KEY.public_file)
    return tmp_path / "coder"


@pytest.mark.parametrize("given", ["file", "line"])
def test_given_key_verifies(given: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = str(file.with_name("release.pub")) if given == "file" else KEY.public_line
    assert main(["verify", str(file), "--key", key]) == 0
    assert f"{file} is verified." in capsys.readouterr().out


def test_pinned_key_verifies(file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(pinned_keys, "RELEASE_KEYS", (KEY.public_line,))
    assert main(["verify", str(file), "-o", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["verified"] and shown["trusted_comment"] == "coder 2.34.0" and len(shown["sha256"]) == 64


def test_changed_file_exits_with_1(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_bytes(b"changed")
    assert main(["verify", str(file), "--key", KEY.public_line, "-o", "json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert not shown["verified"] and shown["code"] == "release_signature_wrong" and "Do not run it" in shown["hint"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["absent", "--key", KEY.public_line], "absent cannot be read: No such file"),
        (["a\0b", "--key", KEY.public_line], "cannot be read: the path is not valid"),
        (["coder", "--key", KEY.public_line, "--signature", "a\0b"], "cannot be read: the path is not valid"),
        (["coder", "--key", "a" * 5000], "this is not a minisign public key"),
        (["coder"], "this program pins no release key"),
        (["coder", "--key", "nonsense"], "this is not a minisign public key"),
        (["coder", "--key", KEY.public_line, "--signature", "absent"], "absent cannot be read"),
        (["release.pub", "--key", KEY.public_line], "there is neither release.pub.minisig nor SHA256SUMS"),
    ],
)
def test_impossible_check_exits_with_2(
    words: list[str], text: str, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(file.parent)
    monkeypatch.setattr(pinned_keys, "RELEASE_KEYS", ())
    assert main(["verify", *words]) == 2
    assert text in capsys.readouterr().err


BAD_KEYS = {
    "empty": "",
    "cut": KEY.public_line[:-4],
    "longer": KEY.public_line + "AAAA",
    "two on a line": f"{KEY.public_line} {KEY.public_line}",
    "other algorithm": base64.b64encode(b"XX" + KEY.id + KEY.public).decode(),
    "secret key": base64.b64encode(b"EdScB2" + bytes(152)).decode(),
    "comment only": "untrusted comment: minisign public key",
    "not ASCII": KEY.public_line.replace("R", "Ｒ", 1),
}


@pytest.mark.parametrize("bad", BAD_KEYS)
def test_unusable_pinned_key_is_refused(bad: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release with such a key would verify nothing."""
    monkeypatch.setattr(pinned_keys, "RELEASE_KEYS", (KEY.public_line, BAD_KEYS[bad]))
    with pytest.raises(CoderError, match="not a minisign public key"):
        public_keys("")


def test_pinned_keys_are_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the keys of this program, which a checkout may not have."""
    good = (*pinned_keys.RELEASE_KEYS, KEY.public_line, OTHER.public_line)
    monkeypatch.setattr(pinned_keys, "RELEASE_KEYS", good)
    found = public_keys("")
    assert len({key.id for key in found}) == len(good) and [key.key for key in found[-2:]] == [KEY.public, OTHER.public]
