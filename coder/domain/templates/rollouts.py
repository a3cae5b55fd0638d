"""Rules of staged rollouts: membership of workspaces, the version they are offered, stages and the failure limit.

A rollout offers a template's version to a part of its workspaces before it becomes the active one. Only automatic
updates and updates by users follow the offer; new workspaces get the active version until the rollout is completed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal
from uuid import UUID

RolloutStatus = Literal["running", "stopped", "completed", "rolled_back", "canceled"]
RolloutAction = Literal["next", "stop", "resume", "rollback"]

OPEN: tuple[RolloutStatus, ...] = ("running", "stopped")
"""Statuses in which a rollout affects workspaces. A template has at most one such rollout."""
EVERYBODY = 100
"""Percentage of the last stage: the version becomes the active one."""
DEFAULT_STAGES = (5, 25, EVERYBODY)
DEFAULT_GROUP_STAGES = (0, EVERYBODY)
"""Stages of a rollout that begins with a group: 0 percent of the other workspaces, then all."""
DEFAULT_FAILURE_PERCENT = 20
DEFAULT_MINIMUM_BUILDS = 5
_MOST_STAGES = 20
_MOST_BUILDS = 100_000


@dataclass(frozen=True, slots=True)
class Offer:
    """Facts of an open rollout that decide what a workspace is offered."""

    rollout_id: UUID
    version_id: UUID
    percent: int
    is_running: bool
    """False for a stopped rollout, which reaches no further workspaces."""


def bucket_of(rollout_id: UUID, workspace_id: UUID) -> int:
    """Return the workspace's place, 0 to 99: stable for a rollout, and independent of its place in another one."""
    digest = hashlib.sha256(rollout_id.bytes + workspace_id.bytes).digest()
    return int.from_bytes(digest[:8]) % 100


def is_member(offer: Offer, workspace_id: UUID, *, in_group: bool) -> bool:
    """Return whether the current stage contains the workspace. `in_group`: its owner is in the rollout's group."""
    return in_group or bucket_of(offer.rollout_id, workspace_id) < offer.percent


def reaches_nobody(percent: int, *, has_group: bool) -> bool:
    """Return whether the current stage contains no workspace: the group that it began with was deleted."""
    return percent == 0 and not has_group


def offered_version(
    active_version_id: UUID, offer: Offer | None, workspace_id: UUID, current_version_id: UUID | None, *, in_group: bool
) -> UUID:
    """Return the version to which an update brings the workspace: the active one without an open rollout.

    A workspace that has the version of an open rollout keeps it, whether the rollout is running or stopped, so that it
    does not change its version twice. After a rollback no rollout is open, and the active version is the former one.
    """
    if offer is None:
        return active_version_id
    if current_version_id == offer.version_id:
        return offer.version_id
    reached = offer.is_running and is_member(offer, workspace_id, in_group=in_group)
    return offer.version_id if reached else active_version_id


def explain_stages(stages: Sequence[int], *, has_group: bool) -> str:
    """Return the reason why a rollout cannot have these stages; empty if it can."""
    if not 2 <= len(stages) <= _MOST_STAGES:
        return f"A rollout has 2 to {_MOST_STAGES} stages."
    if stages[-1] != EVERYBODY:
        return f"The last stage must be {EVERYBODY} percent: the version becomes the active one."
    if any(later <= earlier for earlier, later in pairwise(stages)):
        return "Each stage must be larger than the one before it."
    if stages[0] < (0 if has_group else 1):
        return "The first stage must be at least 1 percent; 0 percent is possible only with a group."
    return ""


def explain_limits(failure_percent: int, minimum_builds: int) -> tuple[str, str]:
    """Return the reasons why a failure limit is invalid: for the percentage, and for the number of builds."""
    return (
        "" if 0 <= failure_percent <= 100 else "The failure limit must be 0 to 100 percent.",
        "" if 1 <= minimum_builds <= _MOST_BUILDS else f"The number of builds must be 1 to {_MOST_BUILDS}.",
    )


def next_percent(stages: Sequence[int], percent: int) -> int:
    """Return the percentage of the stage after the current one."""
    return next((stage for stage in stages if stage > percent), EVERYBODY)


@dataclass(frozen=True, slots=True)
class BuildCounts:
    """Starts with the rollout's version, by workspaces of the rollout, since the current stage began."""

    succeeded: int = 0
    failed: int = 0
    unfinished: int = 0

    @property
    def finished(self) -> int:
        """Number of builds that tell something about the version: canceled builds do not."""
        return self.succeeded + self.failed


def exceeds_limit(counts: BuildCounts, failure_percent: int, minimum_builds: int) -> bool:
    """Return whether more than `failure_percent` of at least `minimum_builds` finished builds failed."""
    return counts.finished >= minimum_builds and counts.failed * 100 > failure_percent * counts.finished
