"""`scripts/bench scale --full`: what a part measured is kept, whatever happens to it, and misses are shown."""

from __future__ import annotations

import json
import signal
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bench import _full
from tests.bench.__main__ import main
from tests.bench._failures import failed
from tests.bench._full import Emit, Options, SkippedError
from tests.bench._full_agents import CORES, Load, _further
from tests.bench._full_upgrades import Session

Run = Callable[[Options, Path, Emit], None]


def run(monkeypatch: pytest.MonkeyPatch, file: Path, part: Run) -> tuple[int, list[dict[str, object]]]:
    module = types.ModuleType("tests.bench._full_fake")
    module.run = part  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tests.bench._full_fake", module)
    monkeypatch.setitem(_full.PARTS, "fake", _full.Part("_full_fake", lambda _: 1))
    status = _full.run_part("fake", Options(), file)
    return status, [json.loads(line) for line in file.read_text().splitlines()]


def test_rows_of_failed_part_stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def part(_options: Options, folder: Path, emit: Emit) -> None:
        (folder / "left").touch()
        emit("a row of it", 2.0, "s", 1)
        raise RuntimeError("broken")

    status, (row, error) = run(monkeypatch, tmp_path / "rows", part)
    assert (status, row["metric"], row["value"], row["target"]) == (1, "a row of it", 2.0, 1)
    skipped = error["skipped"]
    assert isinstance(skipped, dict) and failed(skipped) == ["part fake"]


def test_skipped_part_is_no_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def part(_options: Options, _folder: Path, _emit: Emit) -> None:
        raise SkippedError("no Go here")

    assert run(monkeypatch, tmp_path / "rows", part) == (0, [{"skipped": {"part fake": "no Go here"}}])


@pytest.mark.parametrize(("status", "is_whole"), [(0, True), (1, False)])
def test_incomplete_part_misses_target(status: int, is_whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def fake(_name: str, _options: Options, file: Path, _limit: float) -> int:
        file.write_text(json.dumps({"metric": "a row of it", "value": 1}) + "\n")
        return status

    monkeypatch.setattr(_full, "_run", fake)
    monkeypatch.setattr(_full, "_become_subreaper", lambda: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    rows, skipped = _full.measure(Options(parts=("fresh",)))
    assert [row["value"] for row in rows if "measured to its end" in row["metric"]] == [is_whole]
    assert rows[0]["metric"] == "a row of it" and bool(failed(skipped)) is not is_whole


def test_unknown_part_is_rejected(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "scale", "--full", "--part", "fresh,nothing"])
    with pytest.raises(SystemExit):
        main()
    assert "no such part: nothing" in capsys.readouterr().err


def test_next_step_stays_below_limits() -> None:
    def load(agents: int, cores: float, simulator: float = 0.0) -> Load:
        return Load(agents, 1.0, cores * 1000, 0.0, simulator * 1000)

    assert _further([load(400, 0.3)], 10_000) == 960
    assert _further([load(400, 0.3), load(1000, 0.6)], 10_000) == 2090
    assert _further([load(400, 0.3), load(1000, 0.6)], 1500) == 1500
    assert _further([load(400, 0.3, 0.4)], 10_000) == 480
    assert _further([load(400, CORES + 0.1)], 10_000) == 0


def test_session_counts_gaps_and_ignores_repeats() -> None:
    session = Session("web terminal", "relayed")
    for number, delay in ((0, 0.0), (1, 2.0), (4, 0.0), (3, 9.0), (4, 9.0)):
        session.take(b"%d %f end\r" % (number, time.monotonic() - delay))
    session.take(b"17 cut off")
    assert (session.lines, session.lost) == (5, 2)
    assert 2.0 <= session.longest < 9.0
    session.judge()
    assert not session.ended
    session.last -= 60
    session.judge()
    assert session.ended.startswith("silent")
