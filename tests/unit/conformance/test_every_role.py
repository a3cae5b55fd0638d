"""Every operation as every role in the short form: one server, requests side by side (`tests/conformance/short.py`).

The suite asks each operation as a third of the callers, and every cell with `--soak`.
"""

from __future__ import annotations

import pytest

from tests.conformance.matrix import out_of_scope
from tests.conformance.scope import in_scope, permission_rows
from tests.conformance.short import (
    callers,
    check_every_role,
    policy_refuses,
    predicted_cells,
    recorded_cells,
    sampled_cells,
)
from tests.conformance.world import populated
from tests.kit.api.api_description import scopes_by_operation

SHOWN_TO_FELLOWS = "GET /api/v2/organizations/{organization}/members/{user}"
"""Members of an organization see each other's names, which is less than reading the membership."""


STEP = 3
"""One in so many callers of an operation is asked in the suite."""


@pytest.mark.parametrize("step", [STEP, pytest.param(1, marks=pytest.mark.soak)])
async def test_every_operation_as_every_role(step: int) -> None:
    async with populated() as world:
        matrix = await check_every_role(world, step)
    assert not matrix.wrong, "\n".join(matrix.wrong)
    assert matrix.cells == len([*sampled_cells(step)])


def test_sample_covers_operations_and_callers() -> None:
    every, sample = [*sampled_cells(1)], [*sampled_cells(STEP)]
    assert len(every) == len([*recorded_cells(), *predicted_cells()]) < (STEP + 1) * len(sample)
    assert {caller for _, caller, _ in sample} == {caller for _, caller, _ in every}
    asked, known = ({(row["method"], row["path"]) for row, _, _ in cells} for cells in (sample, every))
    assert len(asked) > 0.9 * len(known), sorted(known - asked)


def test_short_form_covers_everything() -> None:
    cells = [*recorded_cells(), *predicted_cells()]
    assert {caller for _, caller, _ in cells} == set(callers(permission_rows()[0]))
    asked = {(row["method"], row["path"].split(" ")[0]) for row, _, _ in cells}
    assert [item.name for item in in_scope() if (item.method, item.path) not in asked] == []


def test_policy_allows_recorded_access() -> None:
    """The prediction for cells without a recording is compared with the recorded cells."""
    scopes = scopes_by_operation()
    operations = {(item.method, item.path): item for item in in_scope()}
    compared, wrong = 0, []
    for row in permission_rows():
        operation = operations.get((row["method"], row["path"].split(" ")[0]))
        if out_of_scope(row) or row["object_owner"] == "self" or operation is None:
            continue
        for caller in (name for name in callers(row) if name != "anonymous"):
            if policy_refuses(operation, scopes[operation.name], caller):
                compared += 1
                if int(row[caller]) < 400 and operation.name != SHOWN_TO_FELLOWS:
                    wrong.append(f"{operation.name} as {caller}: {row[caller]}")
    assert not wrong, "\n".join(wrong)
    assert compared > 400
