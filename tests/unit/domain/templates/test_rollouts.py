"""Rules of staged rollouts."""

from __future__ import annotations

from uuid import UUID, uuid5

import pytest

from coder.domain.templates.rollouts import (
    DEFAULT_GROUP_STAGES,
    DEFAULT_STAGES,
    BuildCounts,
    Offer,
    bucket_of,
    exceeds_limit,
    explain_limits,
    explain_stages,
    is_member,
    next_percent,
    offered_version,
)

OLD, NEW, OTHER = (UUID(int=number) for number in (1, 2, 3))
ROLLOUT = UUID("7c6b6b60-1111-4222-8333-944444444444")
WORKSPACES = [uuid5(ROLLOUT, str(number)) for number in range(2000)]
INSIDE = next(key for key in WORKSPACES if bucket_of(ROLLOUT, key) < 5)
OUTSIDE = next(key for key in WORKSPACES if bucket_of(ROLLOUT, key) >= 25)


def offer(percent: int, *, is_running: bool = True) -> Offer:
    return Offer(ROLLOUT, NEW, percent, is_running)


def members(percent: int, rollout: UUID = ROLLOUT) -> set[UUID]:
    return {key for key in WORKSPACES if is_member(Offer(rollout, NEW, percent, True), key, in_group=False)}


def test_larger_stage_only_adds() -> None:
    before: set[UUID] = set()
    for percent in (0, 1, 5, 25, 50, 99, 100):
        present = members(percent)
        assert before <= present
        assert abs(len(present) - percent * 20) < 100, percent
        before = present
    assert members(0) == set() and members(100) == set(WORKSPACES)


def test_membership_depends_on_rollout() -> None:
    """The same workspaces are not the first ones of each rollout."""
    assert members(25) == members(25)
    other = members(25, UUID(int=9))
    assert 0 < len(members(25) & other) < len(other) / 2


def test_bucket_is_stable() -> None:
    """Another release must not move workspaces between stages of an open rollout."""
    assert [bucket_of(ROLLOUT, UUID(int=number)) for number in (1, 2, 3)] == [70, 72, 53]


@pytest.mark.parametrize(
    ("case", "applying", "workspace", "current", "in_group", "expected"),
    [
        ("no rollout", None, INSIDE, OLD, False, OLD),
        ("after a rollback", None, INSIDE, NEW, False, OLD),
        ("in the stage", offer(5), INSIDE, OLD, False, NEW),
        ("in the stage, with an older version", offer(5), INSIDE, OTHER, False, NEW),
        ("in the stage, never built", offer(5), INSIDE, None, False, NEW),
        ("outside of the stage", offer(25), OUTSIDE, OLD, False, OLD),
        ("outside, with an older version", offer(25), OUTSIDE, OTHER, False, OLD),
        ("outside, but chose the version", offer(25), OUTSIDE, NEW, False, NEW),
        ("in the group", offer(0), OUTSIDE, OLD, True, NEW),
        ("not in the group", offer(0), INSIDE, OLD, False, OLD),
        ("stopped, has not updated", offer(5, is_running=False), INSIDE, OLD, False, OLD),
        ("stopped, has updated", offer(5, is_running=False), INSIDE, NEW, False, NEW),
        ("stopped, in the group", offer(0, is_running=False), INSIDE, OLD, True, OLD),
    ],
)
def test_offered_version(
    case: str, applying: Offer | None, workspace: UUID, current: UUID | None, in_group: bool, expected: UUID
) -> None:
    assert offered_version(OLD, applying, workspace, current, in_group=in_group) == expected, case


@pytest.mark.parametrize(
    ("stages", "has_group", "fault"),
    [
        (DEFAULT_STAGES, False, ""),
        (DEFAULT_GROUP_STAGES, True, ""),
        ((0, 50, 100), True, ""),
        ((10, 100), True, ""),
        ((0, 100), False, "The first stage"),
        ((-1, 100), True, "The first stage"),
        ((100,), False, "A rollout has"),
        ((), False, "A rollout has"),
        ((5, 25), False, "The last stage"),
        ((5, 101), False, "The last stage"),
        ((25, 5, 100), False, "Each stage"),
        ((5, 5, 100), False, "Each stage"),
        ((*range(1, 21), 100), False, "A rollout has"),
    ],
)
def test_explain_stages(stages: tuple[int, ...], has_group: bool, fault: str) -> None:
    explained = explain_stages(stages, has_group=has_group)
    assert explained.startswith(fault) and bool(explained) == bool(fault)


@pytest.mark.parametrize(
    ("failures", "builds", "refused"),
    [
        (0, 1, (False, False)),
        (100, 100_000, (False, False)),
        (-1, 5, (True, False)),
        (101, 0, (True, True)),
        (20, 100_001, (False, True)),
    ],
)
def test_explain_limits(failures: int, builds: int, refused: tuple[bool, bool]) -> None:
    assert tuple(map(bool, explain_limits(failures, builds))) == refused


@pytest.mark.parametrize(("percent", "expected"), [(0, 5), (5, 25), (25, 100), (100, 100)])
def test_next_percent(percent: int, expected: int) -> None:
    assert next_percent(DEFAULT_STAGES, percent) == expected


@pytest.mark.parametrize(
    ("succeeded", "failed", "limit", "minimum", "exceeded"),
    [
        (0, 0, 20, 5, False),
        (0, 4, 20, 5, False),  # too few builds
        (0, 5, 20, 5, True),
        (4, 1, 20, 5, False),  # exactly the limit
        (3, 2, 20, 5, True),
        (99, 1, 0, 5, True),
        (100, 0, 0, 5, False),
        (0, 9, 100, 1, False),
    ],
)
def test_exceeds_limit(succeeded: int, failed: int, limit: int, minimum: int, exceeded: bool) -> None:
    counts = BuildCounts(succeeded, failed, unfinished=7)
    assert exceeds_limit(counts, limit, minimum) is exceeded
