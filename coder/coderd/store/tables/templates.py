"""Tables of templates, their versions, and the results of a version's import.

A version may exist without a template (it is uploaded and imported first). Names are unique among the living only, so
that history can still name a deleted template. Results of an import are replaced as a whole, never edited.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)

from coder.coderd.store.engine.metadata import Bytes, Json, Timestamp, Uuid, metadata

_FALSE = text("false")
_TRUE = text("true")

templates = Table(
    "templates",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("organization_id", Uuid, ForeignKey("organizations.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("display_name", Text, nullable=False, server_default=""),
    Column("description", Text, nullable=False, server_default=""),
    Column("icon", Text, nullable=False, server_default=""),
    Column("provisioner", Text, nullable=False),
    # No foreign key: versions point at templates already, and the pair is written in one transaction.
    Column("active_version_id", Uuid, nullable=False),
    Column("created_by", Uuid, ForeignKey("users.id"), nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("deleted", Boolean, nullable=False, server_default=_FALSE),
    Column("deprecated", Text, nullable=False, server_default=""),
    Column("default_ttl_ms", BigInteger, nullable=False, server_default="0"),
    Column("activity_bump_ms", BigInteger, nullable=False, server_default="3600000"),
    Column("time_til_autostop_notify_ms", BigInteger, nullable=False, server_default="0"),
    Column("autostop_days", SmallInteger, nullable=False, server_default="0"),
    Column("autostop_weeks", SmallInteger, nullable=False, server_default="1"),
    Column("autostart_days", SmallInteger, nullable=False, server_default="127"),
    Column("allow_user_cancel_workspace_jobs", Boolean, nullable=False, server_default=_FALSE),
    Column("allow_user_autostart", Boolean, nullable=False, server_default=_TRUE),
    Column("allow_user_autostop", Boolean, nullable=False, server_default=_TRUE),
    Column("failure_ttl_ms", BigInteger, nullable=False, server_default="0"),
    Column("time_til_dormant_ms", BigInteger, nullable=False, server_default="0"),
    Column("time_til_dormant_autodelete_ms", BigInteger, nullable=False, server_default="0"),
    Column("require_active_version", Boolean, nullable=False, server_default=_FALSE),
    Column("max_port_share_level", Text, nullable=False, server_default="public"),
    Column("cors_behavior", Text, nullable=False, server_default="simple"),
    Column("use_classic_parameter_flow", Boolean, nullable=False, server_default=_FALSE),
    Column("disable_module_cache", Boolean, nullable=False, server_default=_FALSE),
    Column("agents_allowed", Boolean, nullable=False, server_default=_TRUE),
    Column("user_acl", Json, nullable=False, server_default=text("'{}'::jsonb")),
    Column("group_acl", Json, nullable=False, server_default=text("'{}'::jsonb")),
    Column("full_build_tokens", Boolean, nullable=False, server_default=_FALSE),
    Index("ix_templates_active_version_id", "active_version_id"),
)
"""Days are bit masks, Monday = 1 … Sunday = 64. ACLs are `{id: role}` with role `use` or `admin`."""

Index(
    "ix_templates_organization_id_name_living",
    templates.c.organization_id,
    func.lower(templates.c.name),
    unique=True,
    postgresql_where=text("NOT deleted"),
)

template_versions = Table(
    "template_versions",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("template_id", Uuid, ForeignKey("templates.id", ondelete="CASCADE")),
    Column("organization_id", Uuid, ForeignKey("organizations.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("message", Text, nullable=False, server_default=""),
    Column("readme", Text, nullable=False, server_default=""),
    Column("job_id", Uuid, ForeignKey("provisioner_jobs.id"), nullable=False, unique=True),
    Column("created_by", Uuid, ForeignKey("users.id"), nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("archived", Boolean, nullable=False, server_default=_FALSE),
    Column("has_ai_task", Boolean, nullable=False, server_default=_FALSE),
    Column("has_external_agent", Boolean, nullable=False, server_default=_FALSE),
    Column("source_example_id", Text, nullable=False, server_default=""),
    # [{"id": provider, "optional": bool}] from the import
    Column("external_auth_providers", Json, nullable=False, server_default=text("'[]'::jsonb")),
    UniqueConstraint("template_id", "name"),
    Index("ix_template_versions_template_id_created_at", "template_id", "created_at"),
)

template_version_parameters = Table(
    "template_version_parameters",
    metadata,
    Column("template_version_id", Uuid, ForeignKey("template_versions.id", ondelete="CASCADE"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("display_name", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("form_type", Text, nullable=False),
    Column("mutable", Boolean, nullable=False),
    Column("default_value", Text, nullable=False),
    Column("icon", Text, nullable=False),
    Column("options", Json, nullable=False),
    Column("validation_regex", Text, nullable=False),
    Column("validation_error", Text, nullable=False),
    Column("validation_min", Integer),
    Column("validation_max", Integer),
    Column("validation_monotonic", Text, nullable=False),
    Column("required", Boolean, nullable=False),
    Column("ephemeral", Boolean, nullable=False),
    Column("display_order", Integer, nullable=False),
)

template_version_variables = Table(
    "template_version_variables",
    metadata,
    Column("template_version_id", Uuid, ForeignKey("template_versions.id", ondelete="CASCADE"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("description", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("value", Text, nullable=False),
    Column("default_value", Text, nullable=False),
    Column("required", Boolean, nullable=False),
    Column("sensitive", Boolean, nullable=False),
)

template_version_presets = Table(
    "template_version_presets",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("template_version_id", Uuid, ForeignKey("template_versions.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("icon", Text, nullable=False),
    Column("is_default", Boolean, nullable=False),
    Column("parameters", Json, nullable=False),
    # The next four describe prebuilt workspaces; without a number the preset has none.
    Column("desired_instances", Integer),
    Column("expire_after_seconds", Integer, nullable=False, server_default="0"),
    Column("scheduling_timezone", Text, nullable=False, server_default=""),
    Column("schedules", Json, nullable=False, server_default=text("'[]'::jsonb")),
    Column("created_at", Timestamp, nullable=False),
    Column("invalidated_at", Timestamp, nullable=True),
    Index("ix_template_version_presets_template_version_id", "template_version_id"),
)

template_version_workspace_tags = Table(
    "template_version_workspace_tags",
    metadata,
    Column("template_version_id", Uuid, ForeignKey("template_versions.id", ondelete="CASCADE"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
"""Values are expressions, evaluated for every build."""

template_version_terraform = Table(
    "template_version_terraform",
    metadata,
    Column("template_version_id", Uuid, ForeignKey("template_versions.id", ondelete="CASCADE"), primary_key=True),
    Column("cached_plan", Bytes, nullable=False),
    Column("module_files_id", Uuid, ForeignKey("files.id")),
    Column("updated_at", Timestamp, nullable=False),
    Index("ix_template_version_terraform_module_files_id", "module_files_id"),
)

files = Table(
    "files",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("hash", Text, nullable=False),
    Column("created_by", Uuid, ForeignKey("users.id"), nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("mimetype", Text, nullable=False),
    Column("data", Bytes, nullable=False),
    UniqueConstraint("hash", "created_by"),
    Index("ix_files_created_by", "created_by"),
)
