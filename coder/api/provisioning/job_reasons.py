"""JSON shapes of the reasons why a job is pending, shared by server and client."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.struct import ApiStruct
from coder.api.provisioning.jobs import ProvisionerJobStatus


class WaitingDaemon(ApiStruct):
    """Reason why one daemon does not run the job right now. Ours, not upstream's."""

    daemon_id: UUID
    daemon_name: str
    organization_id: UUID
    code: str
    message: str
    may_take: bool
    """Whether the dispatcher assigns it the job on request."""
    last_seen_at: datetime | None = None
    tag: str | UnsetType = UNSET
    wanted: str | UnsetType = UNSET
    found: str | UnsetType = UNSET
    busy_with: UUID | UnsetType = UNSET
    busy_since: datetime | UnsetType = UNSET


class ExpectedStart(ApiStruct):
    earliest: datetime
    latest: datetime
    samples: int


class WaitingRemedy(ApiStruct):
    tags: dict[str, str]
    command: str
    nearest: str
    notes: list[str]


class ProvisionerJobWhy(ApiStruct):
    """Reasons why a job is pending: one for every daemon, the nearest miss first. Ours, not upstream's."""

    job_id: UUID
    status: ProvisionerJobStatus
    verdict: str
    summary: str
    provisioner: str
    tags: dict[str, str]
    parked: bool
    queue_position: int
    """Position among the jobs that compete for the same daemons; 1 is next, 0: no daemon may run it, or it is not
    pending."""
    queue_size: int
    daemons: list[WaitingDaemon]
    expected_start: ExpectedStart | None
    no_expected_start: str
    """Reason for the absence of a range."""
    remedy: WaitingRemedy | None
    worker_id: UUID | UnsetType = UNSET
    worker_name: str | UnsetType = UNSET


class ParkProvisionerJobRequest(ApiStruct):
    parked: bool = True
