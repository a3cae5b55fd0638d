"""Version of an update: the offered one; the active one at servers without rollouts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import msgspec
import pytest

from coder.api.templates.rollouts import OfferedVersion
from coder.client.offered_version import UpdateTarget, find_update_target, update_target
from coder.net.errors import HttpError

ID, ACTIVE, STAGED = (UUID(int=number) for number in (1, 2, 3))
WORKSPACE = cast("Any", SimpleNamespace(id=ID, template_active_version_id=ACTIVE, outdated=False))


def _offer(workspace_id: UUID) -> OfferedVersion:
    return OfferedVersion(
        workspace_id=workspace_id,
        template_version_id=STAGED,
        template_version_name="v2",
        rollout_id=UUID(int=4),
        is_staged=True,
        outdated=True,
    )


def _refusal(status: int) -> HttpError:
    return HttpError(status, "refused")


CASES: dict[str, tuple[list[OfferedVersion] | HttpError, UpdateTarget]] = {
    "offered": ([_offer(ID)], UpdateTarget(STAGED, True)),
    "another workspace": ([_offer(STAGED)], UpdateTarget(ACTIVE, False)),
    "left out": ([], UpdateTarget(ACTIVE, False)),
    "older server": (_refusal(404), UpdateTarget(ACTIVE, False)),
    "the original": (_refusal(400), UpdateTarget(ACTIVE, False)),
}


def _answer(result: list[OfferedVersion] | HttpError) -> Any:
    if isinstance(result, HttpError):
        raise result
    return SimpleNamespace(body=msgspec.json.encode(result))


@pytest.mark.parametrize("case", CASES)
async def test_update_target(case: str) -> None:
    result, expected = CASES[case]

    async def request(_method: str, _path: str) -> Any:
        return _answer(result)

    client = cast("Any", SimpleNamespace(request=lambda _method, _path: _answer(result)))
    assert update_target(client, WORKSPACE) == expected
    assert await find_update_target(cast("Any", SimpleNamespace(request=request)), WORKSPACE) == expected


def test_update_target_passes_failures() -> None:
    client = cast("Any", SimpleNamespace(request=lambda _method, _path: _answer(_refusal(500))))
    with pytest.raises(HttpError):
        update_target(client, WORKSPACE)
