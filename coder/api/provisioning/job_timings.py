"""JSON shapes of jobs' stage durations, shared by server and client."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from coder.api.base.enums import TimingStage
from coder.api.base.struct import ApiStruct


class ProvisionerTiming(ApiStruct):
    job_id: UUID
    started_at: datetime
    ended_at: datetime
    stage: TimingStage
    source: str
    action: str
    resource: str
