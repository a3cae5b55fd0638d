"""The table of resources that jobs of Terraform report, for builds, template imports and dry runs alike.

A resource's metadata never changes after its job and is always read with it, so it is a JSON list on the row (`[{key,
value, sensitive}]`) instead of a table of its own: one statement less in every list of workspaces.
"""

from __future__ import annotations

from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, Table, Text, text

from coder.coderd.store.engine.metadata import Json, Timestamp, Uuid, metadata

workspace_resources = Table(
    "workspace_resources",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("created_at", Timestamp, nullable=False),
    Column("job_id", Uuid, ForeignKey("provisioner_jobs.id", ondelete="CASCADE"), nullable=False),
    Column("transition", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("hide", Boolean, nullable=False, server_default=text("false")),
    Column("icon", Text, nullable=False, server_default=""),
    Column("instance_type", Text, nullable=False, server_default=""),
    Column("daily_cost", Integer, nullable=False, server_default="0"),
    Column("module_path", Text, nullable=False, server_default=""),
    Column("metadata", Json, nullable=False, server_default=text("'[]'::jsonb")),
    Column("position", Integer, nullable=False, server_default="0"),
    Index("ix_workspace_resources_job_id", "job_id"),
)
