"""Files that people and shells write: every door reads each encoding that Windows' programs give them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coder.base.errors import CoderError
from coder.base.written_text import read_written
from coder.cli.agents.credentials import read_token_option
from coder.cli.core.value_text import read_values
from coder.cli.network.vscodessh import _read
from coder.cli.scaletest.agents import _read_tokens
from coder.cli.server.server import _yaml
from coder.cli.templates.template_variables import directory_values

TOKEN = "00000000-0000-4000-8000-000000000001"
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"]


def _agent_token(path: Path) -> Any:
    invocation: Any = SimpleNamespace(options=SimpleNamespace(agent_token="", agent_token_file=str(path)))
    return read_token_option(invocation)


DOORS: dict[str, tuple[str, Callable[[Path], Any], Any]] = {
    "values.yaml": ("a: é\r\nb: 1.10\r\n", lambda path: read_values(path, "variable"), {"a": "é", "b": "1.10"}),
    "settings.yaml": ("a: é\r\n", lambda path: _yaml(str(path)), {"a": "é"}),
    "terraform.tfvars": ('a = "é"\r\n', lambda path: directory_values(path.parent), {"a": "é"}),
    "terraform.tfvars.json": ('{"a": "é"}\r\n', lambda path: directory_values(path.parent), {"a": "é"}),
    "agent-token": (f"{TOKEN}\r\n", _agent_token, TOKEN),
    "agent-tokens": (f"{TOKEN}\r\n{TOKEN}\r\n", lambda path: _read_tokens(str(path)), [TOKEN, TOKEN]),
    "session-token": ("é\r\n", lambda path: _read(str(path), "session-token-file"), "é"),
}
"""File -> its text, the function that reads it, and what it returns."""


def written(text: str, encoding: str) -> bytes:
    return (b"\xfe\xff" if encoding == "utf-16-be" else b"") + text.encode(encoding)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", DOORS)
def test_every_door_reads_marks(name: str, encoding: str, tmp_path: Path) -> None:
    text, read, expected = DOORS[name]
    (tmp_path / name).write_bytes(written(text, encoding))
    assert read(tmp_path / name) == expected


@pytest.mark.parametrize("name", DOORS)
def test_other_encodings_are_refused(name: str, tmp_path: Path) -> None:
    text, read, _ = DOORS[name]
    (tmp_path / name).write_bytes(b"# \xe9\n" + text.encode("latin-1"))
    with pytest.raises(CoderError):
        read(tmp_path / name)


def test_lines_end_alike(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"a\r\nb\rc\n")
    assert read_written(tmp_path / "x") == "a\nb\nc\n"
