"""Replay the recorded exchanges, each area on its own server (`tests/kit/recordings/recorded_areas.py`).

Areas with builds need Terraform. An area whose program is missing on the machine is reported without matches, never
left out.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.kit.recordings.exchange_replay import OURS, Recordings, Report
from tests.kit.recordings.recorded_areas import AREAS, BUILDS, recorded_area


async def replay_areas(areas: Sequence[str], folder: Path, recordings: Recordings = OURS) -> list[Report]:
    """Yield a report for each area."""
    return [await _replay(area, folder / area, recordings) for area in areas]


async def _replay(area: str, folder: Path, recordings: Recordings) -> Report:
    if area in BUILDS and not shutil.which("terraform"):
        numbers = [line["n"] for line in recordings.own(area)]
        mismatches = {number: ["not replayed"] for number in numbers}
        return Report(area, total=len(numbers), mismatches=mismatches, wrong_status=set(numbers))
    folder.mkdir(exist_ok=True)
    async with recorded_area(area, folder, recordings) as place:
        return await place.replay()


__all__ = ["AREAS", "replay_areas"]
