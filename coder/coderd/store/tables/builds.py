"""Tables of builds: requests, parameters, Terraform state and results.

The job that runs a build is in the tables of jobs; a build's status is derived from it. `provisioner_state` may be
megabytes: no query that lists builds selects it.
"""

from __future__ import annotations

from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, Table, Text, UniqueConstraint

from coder.coderd.store.engine.metadata import Bytes, Timestamp, Uuid, metadata

workspace_builds = Table(
    "workspace_builds",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("workspace_id", Uuid, ForeignKey("workspaces.id", ondelete="CASCADE"), nullable=False),
    Column("template_version_id", Uuid, ForeignKey("template_versions.id"), nullable=False),
    Column("build_number", Integer, nullable=False),
    Column("transition", Text, nullable=False),
    Column("initiator_id", Uuid, ForeignKey("users.id"), nullable=False),
    Column("job_id", Uuid, ForeignKey("provisioner_jobs.id"), nullable=False, unique=True),
    Column("reason", Text, nullable=False, server_default="initiator"),
    Column("provisioner_state", Bytes),
    Column("log_level", Text, nullable=False, server_default=""),
    Column("deadline", Timestamp),
    Column("max_deadline", Timestamp),
    Column("daily_cost", Integer, nullable=False, server_default="0"),
    Column("template_version_preset_id", Uuid),
    Column("has_ai_task", Boolean),
    Column("has_external_agent", Boolean),
    Column("ai_task_app_id", Uuid),
    Column("granted_cost", Integer),
    Column("requested_within", Uuid),
    UniqueConstraint("workspace_id", "build_number"),
    Index("ix_workspace_builds_template_version_id", "template_version_id"),
)

workspace_build_parameters = Table(
    "workspace_build_parameters",
    metadata,
    Column("workspace_build_id", Uuid, ForeignKey("workspace_builds.id", ondelete="CASCADE"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
