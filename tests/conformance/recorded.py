"""Replays the recorded exchanges, each area on a server of its own as its README says (`tests/kit/recorded_areas.py`).

Areas with builds need Terraform. What is missing on the machine is reported as an area without matches, never left out.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.kit.recorded_areas import AREAS, BUILDS, recorded_area
from tests.kit.replay import Report, load_area


async def replay_areas(areas: Sequence[str], folder: Path) -> list[Report]:
    """One report an area."""
    return [await _replay(area, folder) for area in areas]


async def _replay(area: str, folder: Path) -> Report:
    if area in BUILDS and not shutil.which("terraform"):
        lines = load_area(area)
        return Report(area, total=len(lines), mismatches={line["n"]: ["not replayed"] for line in lines})
    async with recorded_area(area, folder) as place:
        return await place.replay()


__all__ = ["AREAS", "replay_areas"]
