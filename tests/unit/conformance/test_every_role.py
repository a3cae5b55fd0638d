"""Every operation as every role in the short form: one server, requests side by side (`tests/conformance/short.py`)."""

from __future__ import annotations

from tests.conformance.scope import in_scope, permission_rows
from tests.conformance.short import callers, check_every_role, predicted_cells, recorded_cells
from tests.conformance.world import populated


async def test_every_operation_as_every_role() -> None:
    async with populated() as world:
        matrix = await check_every_role(world)
    assert not matrix.wrong, "\n".join(matrix.wrong)
    assert matrix.cells == len([*recorded_cells(), *predicted_cells()])


def test_the_short_form_has_every_role_and_most_operations() -> None:
    cells = [*recorded_cells(), *predicted_cells()]
    assert {caller for _, caller, _ in cells} == set(callers(permission_rows()[0]))
    asked = {(row["method"], row["path"].split(" ")[0]) for row, _, _ in cells}
    assert len(asked) > 0.8 * len(in_scope())
