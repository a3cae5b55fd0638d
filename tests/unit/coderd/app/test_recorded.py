"""The recorded exchanges of upstream, replayed. Differences are listed, and the list may only shrink.

`REPLAY_UPDATE=1 pytest tests/unit/coderd/app/test_recorded.py` rewrites the list and prints the differences.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.kit.paths import DATA
from tests.kit.recordings.recorded_areas import recorded_area

KNOWN = DATA / "api" / "replay_mismatches.json"
AREAS = (
    "first_user",
    "auth",
    "users",
    "tokens",
    "files",
    "http",
    "organizations",
    "deployment",
    "ratelimit",
    "oauth2_provider",
    "oidc",
)


# httpx leaves the body of an upload unfinished when the server responds early (the 100 MiB line)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("area", AREAS)
async def test_recorded_area(area: str, tmp_path: Path) -> None:
    async with recorded_area(area, tmp_path) as recording:
        report = await recording.replay()
    known: dict[str, list[int]] = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}
    if os.environ.get("REPLAY_UPDATE"):
        print("\n".join(report.lines()))
        known[area] = sorted(report.mismatches)
        KNOWN.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
        return
    new = {number: report.mismatches[number] for number in report.mismatches if number not in known.get(area, [])}
    assert not new, "\n".join(report.lines())
    repaired = [number for number in known.get(area, []) if number not in report.mismatches]
    assert not repaired, f"{area}: {repaired} match now: take them off {KNOWN.name}"
