"""Tables of users and their objects: links to providers, keys, organizations, roles, groups.

Times are timestamptz in UTC; secrets are hashes. A deleted user keeps its row (names and e-mails are unique among the
living only), so that history can still name it. A user's status history is written by a trigger of the migration, so
that no service can forget it.
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
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)

from coder.coderd.store.engine.metadata import Bytes, Json, TextArray, Timestamp, Uuid, metadata

users = Table(
    "users",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("email", Text, nullable=False),
    Column("username", Text, nullable=False),
    Column("name", Text, nullable=False, server_default=""),
    Column("avatar_url", Text, nullable=False, server_default=""),
    Column("hashed_password", Text, nullable=False, server_default=""),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("last_seen_at", Timestamp, nullable=False),
    Column("status", Text, nullable=False, server_default="dormant"),
    Column("login_type", Text, nullable=False, server_default="password"),
    Column("rbac_roles", TextArray, nullable=False, server_default="{}"),
    Column("quiet_hours_schedule", Text, nullable=False, server_default=""),
    Column("one_time_passcode_hash", Bytes),
    Column("one_time_passcode_expires_at", Timestamp),
    Column("github_com_user_id", BigInteger),
    Column("is_system", Boolean, nullable=False, server_default=text("false")),
    Column("is_service_account", Boolean, nullable=False, server_default=text("false")),
    Column("deleted", Boolean, nullable=False, server_default=text("false")),
)
Index(
    "ix_users_email_living",
    func.lower(users.c.email),
    unique=True,
    postgresql_where=text("NOT deleted AND email <> ''"),
)
Index("ix_users_username_living", func.lower(users.c.username), unique=True, postgresql_where=text("NOT deleted"))

user_links = Table(
    "user_links",
    metadata,
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("login_type", Text, primary_key=True),
    Column("linked_id", Text, nullable=False, server_default=""),
    Column("oauth_access_token", Text, nullable=False, server_default=""),
    Column("oauth_refresh_token", Text, nullable=False, server_default=""),
    Column("oauth_expiry", Timestamp),
    Column("claims", Json, nullable=False, server_default=text("'{}'::jsonb")),
)

external_auth_links = Table(
    "external_auth_links",
    metadata,
    Column("provider_id", Text, primary_key=True),
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("access_token", Text, nullable=False),
    Column("refresh_token", Text, nullable=False, server_default=""),
    Column("expires_at", Timestamp),
    Column("extra", Json),
)
"Tokens are sealed where the site has encryption keys (`services/foundation/encryption_at_rest.py`)."

user_configs = Table(
    "user_configs",
    metadata,
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

organizations = Table(
    "organizations",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("name", Text, nullable=False),
    Column("display_name", Text, nullable=False),
    Column("description", Text, nullable=False, server_default=""),
    Column("icon", Text, nullable=False, server_default=""),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("is_default", Boolean, nullable=False, server_default=text("false")),
    Column("deleted", Boolean, nullable=False, server_default=text("false")),
    Column("default_member_roles", TextArray, nullable=False, server_default="{organization-workspace-access}"),
    Column("workspace_sharing", Text, nullable=False, server_default="everyone"),
)
Index(
    "ix_organizations_name_living", func.lower(organizations.c.name), unique=True, postgresql_where=text("NOT deleted")
)
Index("ix_organizations_one_default", organizations.c.is_default, unique=True, postgresql_where=text("is_default"))

organization_members = Table(
    "organization_members",
    metadata,
    Column("organization_id", Uuid, ForeignKey("organizations.id", ondelete="CASCADE"), primary_key=True),
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("roles", TextArray, nullable=False, server_default="{}"),
    Index("ix_organization_members_user_id", "user_id"),
)

custom_roles = Table(
    "custom_roles",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("organization_id", Uuid, ForeignKey("organizations.id", ondelete="CASCADE")),
    Column("name", Text, nullable=False),
    Column("display_name", Text, nullable=False, server_default=""),
    Column("permissions", Json, nullable=False, server_default=text("'{}'::jsonb")),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    UniqueConstraint("organization_id", "name"),
)

groups = Table(
    "groups",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("organization_id", Uuid, ForeignKey("organizations.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("display_name", Text, nullable=False, server_default=""),
    Column("avatar_url", Text, nullable=False, server_default=""),
    Column("quota_allowance", Integer, nullable=False, server_default="0"),
    Column("source", Text, nullable=False, server_default="user"),
    UniqueConstraint("organization_id", "name"),
)
"The group whose id equals its organization's id is Everyone: its members are the organization's."

group_members = Table(
    "group_members",
    metadata,
    Column("group_id", Uuid, ForeignKey("groups.id", ondelete="CASCADE"), primary_key=True),
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Index("ix_group_members_user_id", "user_id"),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("hashed_secret", Bytes, nullable=False),
    Column("last_used", Timestamp, nullable=False),
    Column("expires_at", Timestamp, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("login_type", Text, nullable=False),
    Column("lifetime_seconds", BigInteger, nullable=False),
    Column("ip_address", Text, nullable=False, server_default=""),
    Column("token_name", Text, nullable=False, server_default=""),
    Column("scopes", TextArray, nullable=False, server_default="{coder:all}"),
    Column("allow_list", TextArray, nullable=False, server_default="{*:*}"),
    Column("user_agent", Text, nullable=False, server_default=""),
    Column("build_id", Uuid),
    Column("build_template_id", Uuid),
    Column("build_organization_id", Uuid),
    Column("build_key_id", Text, ForeignKey("api_keys.id", ondelete="CASCADE")),
    Column("build_roles", Text),
    Index("ix_api_keys_user_id", "user_id"),
)
"""`build_id` and the two ids after it: the build that got the key, or the build's key that created it, which is then
`build_key_id`."""

Index("ix_api_keys_build_key_id", api_keys.c.build_key_id, postgresql_where=text("build_key_id IS NOT NULL"))
Index(
    "ix_api_keys_token_name",
    api_keys.c.user_id,
    api_keys.c.token_name,
    unique=True,
    postgresql_where=text("login_type = 'token'"),
)

git_ssh_keys = Table(
    "git_ssh_keys",
    metadata,
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("private_key", Text, nullable=False),
    Column("public_key", Text, nullable=False),
)

user_status_changes = Table(
    "user_status_changes",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("status", Text, nullable=False),
    Column("changed_at", Timestamp, nullable=False),
    Index("ix_user_status_changes_user_id", "user_id", "changed_at"),
)
"""`status` is a user's new status, or `deleted`. The id orders changes of one moment."""
