"""JSON shapes of provisioner jobs, shared by server and client."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.enums import LogLevel, WorkspaceTransition
from coder.api.base.struct import ApiStruct

JobErrorCode = Literal["INSUFFICIENT_QUOTA", "REQUIRED_TEMPLATE_VARIABLES"]

LogSource = Literal["provisioner", "provisioner_daemon"]

ProvisionerJobStatus = Literal["canceled", "canceling", "failed", "pending", "running", "succeeded", "unknown"]

ProvisionerJobType = Literal["template_version_dry_run", "template_version_import", "workspace_build"]


class MatchedProvisioners(ApiStruct):
    count: int
    available: int
    most_recently_seen: datetime | None = None


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
    tags: dict[str, str]
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


ProvisionerLogLevel = Literal["debug"]

ProvisionerStorageMethod = Literal["file"]
