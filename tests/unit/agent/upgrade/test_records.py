"""Records of programs."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from coder.agent.upgrade import records
from coder.agent.upgrade.outcomes import UpgradeNotNowError
from coder.agent.upgrade.records import HOLD_SECONDS, MAX_ATTEMPTS, MAX_RECORDS, Records


def is_held(folder: Path, digest: str = "a") -> bool:
    try:
        Records(folder).check_attempts(digest)
    except UpgradeNotNowError as error:
        assert "did not last" in error.message
        return True
    return False


def test_failed_attempts_hold_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    folder = tmp_path / "upgrade"
    for _ in range(MAX_ATTEMPTS):
        assert not is_held(folder)
        Records(folder).record_attempt("a", "v9")
    assert is_held(folder) and not is_held(folder, "b")
    now -= 3600  # a clock that was set back
    assert is_held(folder)
    now += 3600 + HOLD_SECONDS
    assert not is_held(folder)
    Records(folder).record_attempt("a", "v9")
    assert is_held(folder), "only one more attempt is allowed"


def test_lasting_program_resets_attempts(tmp_path: Path) -> None:
    for digest in ("b", "a", "a"):
        Records(tmp_path).record_attempt(digest, "v9")
    assert is_held(tmp_path)
    Records(tmp_path).mark_lasted("a")
    assert not is_held(tmp_path)
    (left,) = json.loads((tmp_path / "attempts.json").read_text())["attempts"]
    assert (left["digest"], left["count"]) == ("b", 1)


def test_unrecorded_attempt_is_not_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="exists"):
        Records(tmp_path / "file").record_attempt("a", "v9")


ODD = [
    "",
    "[",
    "[]",
    "null",
    '{"attempts":1}',
    '{"attempts":[1]}',
    '{"attempts":[{"digest":1}]}',
    "[" * 100_000,
    '{"attempts":[{"digest":"a","count":"x","at":[]}]}',
    '{"attempts":[{"digest":"a"}]}',
]


@pytest.mark.parametrize("text", ODD, ids=lambda text: text[:30])
def test_invalid_records_are_overwritten(text: str, tmp_path: Path) -> None:
    (tmp_path / "attempts.json").write_text(text)
    assert not is_held(tmp_path)
    for _ in range(MAX_ATTEMPTS):
        Records(tmp_path).record_attempt("a", "v9")
    assert is_held(tmp_path)


def test_oldest_record_is_dropped(tmp_path: Path) -> None:
    kept = Records(tmp_path)
    for number in range(MAX_RECORDS + 1):
        kept.record_attempt(str(number), "v9")
        kept.refuse(str(number), "v9", "no")
    for name in ("attempts", "refused"):
        assert len(json.loads((tmp_path / f"{name}.json").read_text())[name]) == records.MAX_RECORDS
    assert (kept.find_refusal("0"), kept.find_refusal(str(MAX_RECORDS))) == ("", "no")
