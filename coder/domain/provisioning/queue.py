"""The queue of provisioner jobs: eligible daemons and order.

`explain_unfit` and `acquire_job` (coder/coderd/store/provisioning/jobs.py) must agree:
tests/unit/coderd/store/provisioning/test_queue_as_sql.py holds this file's `pick` equal to the dispatcher's choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from coder.domain.provisioning.tags import Mismatch, Reservation, Tags, explain_mismatch, is_untagged

PREVIEW_PRIORITY = 10
"""Priority of previews of updates, which wait behind every build, import and dry run."""
MAX_PREVIEWS = 2
"""Previews that run at once in a deployment: a plan takes a core, and nothing depends on it."""


@dataclass(frozen=True, slots=True)
class JobRequirements:
    """Requirements of a pending job."""

    job_id: UUID
    organization_id: UUID
    provisioner: str
    tags: Tags
    priority: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class DaemonOffer:
    """Capabilities of a daemon."""

    organization_id: UUID
    provisioners: frozenset[str]
    tags: Tags


@dataclass(frozen=True, slots=True)
class TagRule:
    """Rule for untagged jobs and tagged daemons."""

    strict: bool = False
    """`--provisioner-strict-tags`: tagged daemons never take untagged jobs."""
    served: frozenset[tuple[UUID, str]] = frozenset()
    """Organizations and provisioner types that a connected untagged daemon serves, busy or not."""

    def reservation(self, job: JobRequirements) -> Reservation:
        """Return why tagged daemons leave an untagged job alone."""
        if self.strict:
            return "strict"
        return "served" if (job.organization_id, job.provisioner) in self.served else ""


DEFAULT_RULE = TagRule()


def served_by(connected: Iterable[DaemonOffer]) -> frozenset[tuple[UUID, str]]:
    """Return `TagRule.served` of the connected daemons."""
    return frozenset(
        (offer.organization_id, kind) for offer in connected if is_untagged(offer.tags) for kind in offer.provisioners
    )


@dataclass(frozen=True, slots=True)
class OtherOrganization:
    """The daemon serves another organization."""


@dataclass(frozen=True, slots=True)
class OtherProvisioner:
    """The daemon cannot run this kind of template."""

    required: str
    supported: tuple[str, ...]


Unfit = OtherOrganization | OtherProvisioner | Mismatch


def explain_unfit(job: JobRequirements, daemon: DaemonOffer, *, rule: TagRule = DEFAULT_RULE) -> list[Unfit]:
    """Return every reason why `daemon` will never run `job`; empty when it may."""
    reasons: list[Unfit] = []
    if job.organization_id != daemon.organization_id:
        reasons.append(OtherOrganization())
    if job.provisioner not in daemon.provisioners:
        reasons.append(OtherProvisioner(job.provisioner, tuple(sorted(daemon.provisioners))))
    reasons.extend(explain_mismatch(job.tags, daemon.tags, reservation=rule.reservation(job)))
    return reasons


def fits(job: JobRequirements, daemon: DaemonOffer, *, rule: TagRule = DEFAULT_RULE) -> bool:
    return not explain_unfit(job, daemon, rule=rule)


def order(jobs: Iterable[JobRequirements]) -> list[JobRequirements]:
    """Sort first come, first served; users' jobs before prebuilds. `acquire_job` is tested against it."""
    return sorted(jobs, key=lambda job: (job.priority, job.created_at, job.job_id))


def pick(
    jobs: Sequence[JobRequirements], daemon: DaemonOffer, *, rule: TagRule = DEFAULT_RULE, running_previews: int = 0
) -> JobRequirements | None:
    """Return the next job for `daemon`. Tests compare `acquire_job` with it; the server itself asks the database."""
    has_slot = running_previews < MAX_PREVIEWS
    return next(
        (job for job in order(jobs) if fits(job, daemon, rule=rule) and (has_slot or job.priority != PREVIEW_PRIORITY)),
        None,
    )


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """Queue position of a pending job."""

    position: int
    """1 is next. 0: the job is not pending."""
    size: int
    """Jobs pending for the same daemons."""


NO_POSITION = QueuePosition(0, 0)


def queue_positions(
    waiting: Iterable[JobRequirements], daemons: Iterable[DaemonOffer], *, rule: TagRule = DEFAULT_RULE
) -> dict[UUID, QueuePosition]:
    """Return the position of each pending job among the jobs that compete with it for a daemon.

    A job without an eligible daemon has no position (`NO_POSITION`): a number would promise that it will run.
    """
    ordered = order(waiting)
    kinds = {(daemon.organization_id, daemon.provisioners, tuple(sorted(daemon.tags.items()))) for daemon in daemons}
    offers = [DaemonOffer(organization, types, dict(tags)) for organization, types, tags in kinds]
    eligible = [
        frozenset(number for number, offer in enumerate(offers) if fits(job, offer, rule=rule)) for job in ordered
    ]
    results: dict[UUID, QueuePosition] = {}
    for index, job in enumerate(ordered):
        own_eligible = eligible[index]
        rivals = [other for other, others in enumerate(eligible) if own_eligible & others]
        results[job.job_id] = QueuePosition(rivals.index(index) + 1, len(rivals)) if own_eligible else NO_POSITION
    return results
