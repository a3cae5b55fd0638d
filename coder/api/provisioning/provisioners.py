"""JSON shapes of provisioners: what server and client both speak."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.enums import (
    JobErrorCode,
    LogLevel,
    LogSource,
    ProvisionerDaemonStatus,
    ProvisionerJobStatus,
    ProvisionerJobType,
    ProvisionerType,
    TimingStage,
    WorkspaceTransition,
)
from coder.api.base.struct import ApiStruct


class CreateProvisionerKeyRequest(ApiStruct):
    name: str
    tags: dict[str, str] | None


class CreateProvisionerKeyResponse(ApiStruct):
    key: str


class MatchedProvisioners(ApiStruct):
    count: int
    available: int
    most_recently_seen: datetime | None = None


class ProvisionerConfig(ApiStruct):
    daemons: int
    daemon_types: str
    daemon_poll_interval: int
    daemon_poll_jitter: int
    force_cancel_interval: int
    daemon_psk: str


class ProvisionerDaemonJob(ApiStruct):
    id: UUID
    status: ProvisionerJobStatus
    template_name: str
    template_icon: str
    template_display_name: str


class ProvisionerDaemon(ApiStruct):
    id: UUID
    organization_id: UUID
    key_id: str
    created_at: datetime
    name: str
    version: str
    api_version: str
    provisioners: list[ProvisionerType]
    tags: Any
    key_name: str | None
    status: ProvisionerDaemonStatus | None
    current_job: ProvisionerDaemonJob | None
    previous_job: ProvisionerDaemonJob | None
    last_seen_at: datetime | UnsetType = UNSET


class ProvisionerJobInput(ApiStruct):
    error: str | UnsetType = UNSET
    template_version_id: UUID | UnsetType = UNSET
    workspace_build_id: UUID | UnsetType = UNSET


class ProvisionerJobMetadata(ApiStruct):
    template_version_name: str
    template_id: UUID
    template_name: str
    template_display_name: str
    template_icon: str
    workspace_build_transition: WorkspaceTransition | UnsetType = UNSET
    workspace_id: UUID | UnsetType = UNSET
    workspace_name: str | UnsetType = UNSET


class ProvisionerJob(ApiStruct):
    id: UUID
    created_at: datetime
    status: ProvisionerJobStatus
    file_id: UUID
    tags: Any
    queue_position: int
    queue_size: int
    organization_id: UUID
    initiator_id: UUID
    input: ProvisionerJobInput
    type: ProvisionerJobType
    metadata: ProvisionerJobMetadata
    logs_overflowed: bool
    available_workers: list[str] | UnsetType = UNSET
    canceled_at: datetime | UnsetType = UNSET
    completed_at: datetime | UnsetType = UNSET
    error: str | UnsetType = UNSET
    error_code: JobErrorCode | UnsetType = UNSET
    started_at: datetime | UnsetType = UNSET
    worker_id: UUID | UnsetType = UNSET
    worker_name: str | UnsetType = UNSET


class ProvisionerJobLog(ApiStruct):
    id: int
    created_at: datetime
    log_source: LogSource
    log_level: LogLevel
    stage: str
    output: str


ProvisionerKeyTags = Any


class ProvisionerKey(ApiStruct):
    id: UUID
    created_at: datetime
    organization: str
    name: str
    tags: ProvisionerKeyTags


class ProvisionerKeyDaemons(ApiStruct):
    key: ProvisionerKey
    daemons: list[ProvisionerDaemon]


ProvisionerLogLevel = Literal["debug"]


ProvisionerStorageMethod = Literal["file"]


class ProvisionerTiming(ApiStruct):
    job_id: UUID
    started_at: datetime
    ended_at: datetime
    stage: TimingStage
    source: str
    action: str
    resource: str


class WaitingDaemon(ApiStruct):
    """Why one daemon does not run the job right now. Ours, not upstream's."""

    daemon_id: UUID
    daemon_name: str
    organization_id: UUID
    code: str
    message: str
    may_take: bool
    "The dispatcher gives it the job when it asks."
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
    """Why a job waits: one reason for every daemon, the nearest miss first. Ours, not upstream's."""

    job_id: UUID
    status: ProvisionerJobStatus
    verdict: str
    summary: str
    provisioner: str
    tags: dict[str, str]
    parked: bool
    queue_position: int
    "Among the jobs that compete for the same daemons; 1 is next, 0: none may take it, or it does not wait."
    queue_size: int
    daemons: list[WaitingDaemon]
    expected_start: ExpectedStart | None
    no_expected_start: str
    "Why there is no range."
    remedy: WaitingRemedy | None
    worker_id: UUID | UnsetType = UNSET
    worker_name: str | UnsetType = UNSET


class ParkProvisionerJobRequest(ApiStruct):
    parked: bool = True


class DaemonHost(ApiStruct):
    """The machine of a daemon; bytes, and busy cores."""

    cores: int
    cpu: float | None = None
    load: float | None = None
    memory_used: int | None = None
    memory_total: int | None = None
    disk_used: int | None = None
    disk_total: int | None = None


class DaemonSlots(ApiStruct):
    total: int
    busy: int


class ProvisionerDaemonHealth(ApiStruct):
    """What was measured of a daemon. Ours, not upstream's."""

    daemon_id: UUID
    name: str
    status: ProvisionerDaemonStatus
    source: Literal["mesh", "process", "heartbeat"]
    "Asked over the mesh, looked at in the server's own process, or known by its link's heartbeat alone."
    reachable: bool
    version: str
    slots: DaemonSlots
    host: DaemonHost | None = None
    latency_ms: float | None = None
    measured_at: datetime | None = None
    answered_at: datetime | None = None
    unreachable_since: datetime | None = None
    problem: str = ""
