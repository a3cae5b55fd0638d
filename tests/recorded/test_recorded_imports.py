"""The recorded exchanges that need Terraform: templates and provisioners, replayed with the built-in daemons.

As in `tests/unit/coderd/app/test_recorded.py`, what does not match yet is listed and the list may only shrink.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.kit.recordings.recorded_areas import recorded_area

pytestmark = [pytest.mark.system, pytest.mark.skipif(not shutil.which("terraform"), reason="terraform is not here")]

KNOWN = Path(__file__).resolve().parents[1] / "data" / "api" / "replay_mismatches_imports.json"


@pytest.mark.parametrize("area", ["provisioners", "templates", "external_auth"])
async def test_recorded_area(area: str, tmp_path: Path) -> None:
    async with recorded_area(area, tmp_path) as place:
        report = await place.replay()
    known: dict[str, list[int]] = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}
    if os.environ.get("REPLAY_UPDATE"):
        print("\n".join(report.lines()))
        known[area] = sorted(report.mismatches)
        KNOWN.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
        return
    new = {number: report.mismatches[number] for number in report.mismatches if number not in known.get(area, [])}
    assert not new, "\n".join(report.lines())
