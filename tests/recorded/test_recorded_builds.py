"""The recorded exchanges around workspaces: builds by Terraform, and an agent in a process of its own.

As in `tests/unit/coderd/app/test_recorded.py`, what does not match yet is listed and the list may only shrink. Listed
for good: what depends on the moment an agent sends its logs and metadata (agents 84, 91, 92) and on the machine (85),
and advice to switch on dev containers, which our agent does not look after (86).
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.kit.recordings.recorded_areas import recorded_area

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not shutil.which("terraform"), reason="terraform is not here"),
    # httpx leaves the generators of an event stream behind when its reader has seen enough
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

KNOWN = Path(__file__).resolve().parents[1] / "data" / "api" / "replay_mismatches_builds.json"


@pytest.mark.parametrize("area", ["workspaces", "builds", "workspace_options", "agents", "tasks"])
async def test_recorded_area(area: str, tmp_path: Path) -> None:
    async with recorded_area(area, tmp_path) as place:
        report = await place.replay()
    known: dict[str, list[int]] = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}
    if os.environ.get("REPLAY_UPDATE"):
        print("\n".join(report.lines()))
        known[report.area] = sorted(report.mismatches)
        KNOWN.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
        return
    new = {n: report.mismatches[n] for n in report.mismatches if n not in known.get(report.area, [])}
    assert not new, "\n".join(report.lines())
