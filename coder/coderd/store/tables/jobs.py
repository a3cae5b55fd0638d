"""Tables of provisioner jobs: the queue itself, its log lines and its timings.

A job is owned by the daemon named in `worker_id` from `started_at` on. Its status is not stored: it follows from the
times and the error (`domain/provisioning/jobs.py`; the same rule as SQL is in `store/provisioning/jobs.py`).
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    SmallInteger,
    Table,
    Text,
    text,
)

from coder.coderd.store.engine.metadata import Json, Timestamp, Uuid, metadata

provisioner_jobs = Table(
    "provisioner_jobs",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("started_at", Timestamp),
    Column("completed_at", Timestamp),
    Column("canceled_at", Timestamp),
    Column("error", Text, nullable=False, server_default=""),
    Column("error_code", Text, nullable=False, server_default=""),
    Column("organization_id", Uuid, ForeignKey("organizations.id"), nullable=False),
    Column("initiator_id", Uuid, ForeignKey("users.id"), nullable=False),
    Column("provisioner", Text, nullable=False),
    Column("file_id", Uuid, ForeignKey("files.id"), nullable=False),
    Column("type", Text, nullable=False),
    Column("input", Json, nullable=False),
    # No foreign key: a purged daemon leaves its jobs' history readable.
    Column("worker_id", Uuid),
    Column("tags", Json, nullable=False),
    # 0 for a waiting user, 1 for prebuilt workspaces: users first.
    Column("priority", SmallInteger, nullable=False, server_default="0"),
    Column("logs_length", Integer, nullable=False, server_default="0"),
    Column("logs_overflowed", Boolean, nullable=False, server_default=text("false")),
    Index("ix_provisioner_jobs_organization_id_created_at", "organization_id", "created_at"),
    Index(
        "ix_provisioner_jobs_queue",
        "organization_id",
        "priority",
        "created_at",
        postgresql_where=text("started_at IS NULL AND completed_at IS NULL"),
    ),
    Index("ix_provisioner_jobs_unfinished", "updated_at", postgresql_where=text("completed_at IS NULL")),
    Index("ix_provisioner_jobs_worker_id_started_at", "worker_id", "started_at"),
    Index("ix_provisioner_jobs_file_id", "file_id"),
)

provisioner_job_logs = Table(
    "provisioner_job_logs",
    metadata,
    Column("id", BigInteger, Identity(always=False), primary_key=True),
    Column("job_id", Uuid, ForeignKey("provisioner_jobs.id", ondelete="CASCADE"), nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("source", Text, nullable=False),
    Column("level", Text, nullable=False),
    Column("stage", Text, nullable=False),
    Column("output", Text, nullable=False),
    Index("ix_provisioner_job_logs_job_id_id", "job_id", "id"),
)
"""Ids grow over all jobs, so `after=` works as a cursor within one."""

provisioner_job_timings = Table(
    "provisioner_job_timings",
    metadata,
    Column("id", BigInteger, Identity(always=False), primary_key=True),
    Column("job_id", Uuid, ForeignKey("provisioner_jobs.id", ondelete="CASCADE"), nullable=False),
    Column("started_at", Timestamp, nullable=False),
    Column("ended_at", Timestamp, nullable=False),
    Column("stage", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("resource", Text, nullable=False),
    Index("ix_provisioner_job_timings_job_id", "job_id"),
)
