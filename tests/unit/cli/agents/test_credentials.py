"""The agent's token as users paste and save it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coder.base.errors import CoderError
from coder.cli.agents.credentials import require_token

TOKEN = "11111111-2222-4333-8444-555555555555"


def read(token: str = "", path: Path | str = "") -> str:
    invocation: Any = SimpleNamespace(options=SimpleNamespace(agent_token=token, agent_token_file=str(path)))
    return require_token(invocation)


@pytest.mark.parametrize("token", [TOKEN, f"{TOKEN}\n", f" {TOKEN}\r\n", f"\t{TOKEN}"])
def test_surrounding_space_is_removed(token: str) -> None:
    assert read(token) == TOKEN


@pytest.mark.parametrize("token", ["a\nb", "a\r\nX-Header: b", "a b", "a\x00b", "\u201ca\u201d", "a\x1b[0m"])
def test_impossible_token_is_rejected(token: str) -> None:
    with pytest.raises(CoderError, match="a character that no token has"):
        read(token)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_editors_encodings_are_read(encoding: str, end: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(f"{TOKEN}{end}".encode(encoding))
    assert read(path=tmp_path / "token") == TOKEN


@pytest.mark.parametrize("content", [b"\xff\xfea", b"\x80", b"\xff"])
def test_undecodable_file_is_an_error(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(CoderError, match="cannot read the agent's token"):
        read(path=tmp_path / "token")


@pytest.mark.parametrize("content", [b"", b"\n", b"\xef\xbb\xbf\r\n"])
def test_empty_file_is_no_token(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(CoderError, match="CODER_AGENT_TOKEN must be set"):
        read(path=tmp_path / "token")
