"""JSON shapes of provisioners, shared by server and client."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.enums import ProvisionerType
from coder.api.base.struct import ApiStruct
from coder.api.provisioning.jobs import ProvisionerJobStatus

ProvisionerDaemonStatus = Literal["busy", "idle", "offline"]


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
    tags: dict[str, str]
    key_name: str | None
    status: ProvisionerDaemonStatus | None
    current_job: ProvisionerDaemonJob | None
    previous_job: ProvisionerDaemonJob | None
    last_seen_at: datetime | UnsetType = UNSET


class DaemonHost(ApiStruct):
    """Machine of a daemon; bytes, and busy cores."""

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
    """Measurements of a daemon. Ours, not upstream's."""

    daemon_id: UUID
    name: str
    status: ProvisionerDaemonStatus
    source: Literal["mesh", "process", "heartbeat"]
    """Source: polled over the mesh, measured in the server's own process, or only the heartbeat of its connection."""
    reachable: bool
    version: str
    slots: DaemonSlots
    host: DaemonHost | None = None
    latency_ms: float | None = None
    measured_at: datetime | None = None
    answered_at: datetime | None = None
    unreachable_since: datetime | None = None
    problem: str = ""
