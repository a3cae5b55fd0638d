"""Eligible daemons, and reasons for the others."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from coder.domain.provisioning.queue import (
    NO_POSITION,
    DaemonOffer,
    JobRequirements,
    OtherOrganization,
    OtherProvisioner,
    QueuePosition,
    TagRule,
    explain_unfit,
    fits,
    order,
    pick,
    queue_positions,
)
from coder.domain.provisioning.tags import MissingTag, normalize_tags

ORG, ELSEWHERE = UUID(int=1), UUID(int=2)
T = datetime(2026, 11, 21, tzinfo=UTC)


def job(number: int, *, priority: int = 0, minute: int = 0, tags: dict[str, str] | None = None) -> JobRequirements:
    return JobRequirements(
        UUID(int=number), ORG, "terraform", normalize_tags("", tags), priority, T + timedelta(minutes=minute)
    )


def daemon(*types: str, organization: UUID = ORG, tags: dict[str, str] | None = None) -> DaemonOffer:
    return DaemonOffer(organization, frozenset(types or ("terraform",)), normalize_tags("", tags))


def test_every_reason_is_named() -> None:
    reasons = explain_unfit(job(1, tags={"gpu": "yes"}), daemon("echo", organization=ELSEWHERE))
    assert reasons == [OtherOrganization(), OtherProvisioner("terraform", ("echo",)), MissingTag("gpu", "yes")]
    assert fits(job(1), daemon("echo", "terraform"))


def test_users_before_prebuilds_then_oldest() -> None:
    jobs = [job(1, priority=1), job(2, minute=2), job(3, minute=1)]
    assert [requirement.job_id.int for requirement in order(jobs)] == [3, 2, 1]


def test_pick_returns_first_match() -> None:
    jobs = [job(1, tags={"gpu": "yes"}), job(2, minute=1)]
    assert pick(jobs, daemon()) == jobs[1]
    assert pick(jobs, daemon(tags={"gpu": "yes"})) == jobs[0]
    assert pick(jobs, daemon(tags={"gpu": "yes"}), rule=TagRule(strict=True)) == jobs[0]
    assert pick(jobs[1:], daemon(tags={"gpu": "yes"}), rule=TagRule(strict=True)) is None


def test_positions_count_only_rivals() -> None:
    gpu = {"gpu": "yes"}
    jobs = [job(1, tags=gpu), job(2, minute=1), job(3, minute=2), job(4, minute=3, tags={"moon": "yes"})]
    result = queue_positions(jobs, [daemon(), daemon(), daemon("echo")])
    assert result == {
        UUID(int=1): NO_POSITION,
        UUID(int=2): QueuePosition(1, 2),
        UUID(int=3): QueuePosition(2, 2),
        UUID(int=4): NO_POSITION,
    }
    assert queue_positions(jobs, [daemon(tags=gpu)])[UUID(int=3)] == QueuePosition(3, 3)
    assert queue_positions(jobs, [daemon(), daemon(tags=gpu)], rule=TagRule(strict=True))[UUID(int=1)] == QueuePosition(
        1, 1
    )
