"""JSON shape of a template's build report, ours: how the builds of its versions went."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from coder.api.base.enums import WorkspaceTransition
from coder.api.base.struct import ApiStruct
from coder.api.provisioning.jobs import ProvisionerJobStatus

BuildReportStage = Literal["queue", "init", "plan", "graph", "apply", "total", "connect", "start"]
"""`queue` until a provisioner took the job, `total` the provisioner's work, `connect` until an agent connected, `start`
the agent's startup scripts; the others are Terraform's steps."""


class BuildStageReport(ApiStruct):
    """Times of one stage, over successful starts."""

    stage: BuildReportStage
    samples: int
    p50_ms: int
    p95_ms: int


class VersionBuildReport(ApiStruct):
    """Builds of one version."""

    template_version_id: UUID
    template_version_name: str
    active: bool
    succeeded: int
    failed: int
    canceled: int
    never_connected: int
    """Agents of successful starts that did not connect within their time."""
    stages: list[BuildStageReport]


class ReportedBuild(ApiStruct):
    """Build that the caller may read."""

    workspace_owner_name: str
    workspace_name: str
    build_number: int
    template_version_id: UUID
    template_version_name: str
    transition: WorkspaceTransition
    created_at: datetime
    status: ProvisionerJobStatus
    duration_ms: int | None
    """The provisioner's work; null before its end."""
    error: str
    """The first line of the error, empty without one."""
    never_connected: list[str]
    """Names of agents that did not connect within their time."""


class BuildErrorReport(ApiStruct):
    """Failed builds with the same first line of their error."""

    error: str
    count: int
    builds: list[ReportedBuild]
    """The latest ones."""


class TemplateBuildReport(ApiStruct):
    since: datetime
    builds: int
    limited: bool
    """Whether the template has more builds since then: only the latest ones count."""
    versions: list[VersionBuildReport]
    """The active one first, then by their latest build."""
    errors: list[BuildErrorReport]
    """The commonest first."""
    unconnected: list[ReportedBuild]
    """The latest builds with an agent that never connected."""
    latest: list[ReportedBuild]
