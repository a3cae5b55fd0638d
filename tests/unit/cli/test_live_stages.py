"""Drawing of a running job."""

from __future__ import annotations

from datetime import UTC, datetime

from coder.api.base.enums import LogLevel
from coder.api.provisioning.jobs import ProvisionerJobLog
from coder.cli.ui.live_stages import KEPT, TAIL, EndedStage, StageView


def log(stage: str, output: str, second: int, level: LogLevel = "info") -> ProvisionerJobLog:
    at = datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC)
    return ProvisionerJobLog(
        id=second, created_at=at, log_source="provisioner", log_level=level, stage=stage, output=output
    )


def test_next_stage_ends_stage() -> None:
    view = StageView()
    assert view.frame(3, 80, 24) == ["==> ⧗ Queued 3s"]
    assert view.add(log("Plan", "one", 1)) == EndedStage("=== ✔ Queued")
    assert view.add(log("Plan", "two", 2)) is None
    assert view.frame(65, 80, 24) == ["==> ⧗ Plan 1m05s", "  one", "  two"]
    assert view.add(log("Apply", "", 4)) == EndedStage("=== ✔ Plan [3000ms]")
    assert view.frame(0, 80, 24) == ["==> ⧗ Apply 0s"]
    assert view.end(view.last, is_good=False) == EndedStage("=== ✘ Apply [0ms]", (), False)


def test_error_stays_when_next_stage_begins() -> None:
    """A failed job still cleans up, and that stage has no lines."""
    view = StageView()
    view.add(log("Init", "Initializing", 1))
    view.add(log("Init", "Error: no closing brace", 2, "error"))
    assert view.add(log("Cleaning Up", "", 3)) == EndedStage(
        "=== ✘ Init [2000ms]", ("Initializing", "Error: no closing brace"), False
    )
    assert view.add(log("Done", "", 4)) == EndedStage("=== ✔ Cleaning Up [1000ms]")


def test_draws_last_lines_that_fit() -> None:
    view = StageView()
    for number in range(KEPT + 10):
        view.add(log("Plan", f"line {number} " + "x" * 200, 1))
    for rows, lines in ((24, TAIL + 1), (5, 4), (1, 1)):
        frame = view.frame(0, 40, rows)
        assert len(frame) == lines
        assert all(len(line) <= 39 for line in frame)
    assert view.frame(0, 40, 24)[-1].startswith(f"  line {KEPT + 9} ")
    assert len(view.lines) == KEPT


def test_log_cannot_move_cursor() -> None:
    view = StageView()
    view.add(log("Plan", "\x1b[31mred\x1b[0m\x1b[2J\x07\rend\tx", 1))
    assert view.frame(0, 80, 24)[1] == "  redend  x"


def test_multiline_text_is_split() -> None:
    """The drawing is erased by its number of lines."""
    view = StageView()
    view.add(log("Plan\nand\x1b[2J more", "one\ntwo", 1))
    frame = view.frame(0, 80, 24)
    assert frame == ["==> ⧗ Plan and more 0s", "  one", "  two"]
    assert view.add(log("Plan\nand\x1b[2J more", "three", 1)) is None, "it is the same stage"
