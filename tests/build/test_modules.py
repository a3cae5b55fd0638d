"""The slim program's folder, cut out of the full one's."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build"))
import modules


def test_what_an_interrupted_build_left_is_no_part_of_the_next(tmp_path: Path) -> None:
    full, slim = tmp_path / "full", tmp_path / "slim"
    (full / "_internal/lib").mkdir(parents=True)
    for name in ("lib/a.so", "b.so", "c.so"):
        (full / "_internal" / name).write_text(name)
    modules.cut_out(full, slim, ["lib/a.so", "b.so"])
    modules.cut_out(full, slim, ["lib/a.so", "c.so"])
    assert sorted(path.name for path in slim.rglob("*") if path.is_file()) == ["a.so", "c.so"]
