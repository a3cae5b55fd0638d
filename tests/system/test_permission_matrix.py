"""Every cell of the recorded permission matrix: each operation as each role. The long form of scripts/conformance."""

from __future__ import annotations

import json

import pytest

from tests.conformance.__main__ import BASELINE
from tests.conformance.matrix import check_matrix
from tests.conformance.world import populated


@pytest.mark.soak
async def test_every_operation_as_every_role() -> None:
    async with populated() as world:
        matrix = await check_matrix(world)
    known = json.loads(BASELINE.read_text())["permissions"]
    assert matrix.cells == known["cells"]
    assert matrix.cells - len(matrix.wrong) >= known["matched"], "\n".join(matrix.wrong)
