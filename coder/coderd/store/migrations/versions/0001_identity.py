"""People, keys, organizations, groups, files, settings of the site.

Plain SQL: a migration is a fact of its day and must not change when the tables' Python definitions do.
"""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None

_SQL = """
CREATE TABLE organizations (
    id UUID NOT NULL,
    name TEXT NOT NULL,
    display_name TEXT NOT NULL,
    description TEXT DEFAULT '' NOT NULL,
    icon TEXT DEFAULT '' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    is_default BOOLEAN DEFAULT false NOT NULL,
    deleted BOOLEAN DEFAULT false NOT NULL,
    default_member_roles TEXT[] DEFAULT '{organization-workspace-access}' NOT NULL,
    workspace_sharing TEXT DEFAULT 'everyone' NOT NULL,
    CONSTRAINT pk_organizations PRIMARY KEY (id)
);
CREATE UNIQUE INDEX ix_organizations_name_living ON organizations (lower(name)) WHERE NOT deleted;
CREATE UNIQUE INDEX ix_organizations_one_default ON organizations (is_default) WHERE is_default;
CREATE TABLE site_configs (
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    CONSTRAINT pk_site_configs PRIMARY KEY (key)
);
CREATE TABLE users (
    id UUID NOT NULL,
    email TEXT NOT NULL,
    username TEXT NOT NULL,
    name TEXT DEFAULT '' NOT NULL,
    avatar_url TEXT DEFAULT '' NOT NULL,
    hashed_password TEXT DEFAULT '' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    last_seen_at TIMESTAMP WITH TIME ZONE NOT NULL,
    status TEXT DEFAULT 'dormant' NOT NULL,
    login_type TEXT DEFAULT 'password' NOT NULL,
    rbac_roles TEXT[] DEFAULT '{}' NOT NULL,
    quiet_hours_schedule TEXT DEFAULT '' NOT NULL,
    one_time_passcode_hash BYTEA,
    one_time_passcode_expires_at TIMESTAMP WITH TIME ZONE,
    github_com_user_id BIGINT,
    is_system BOOLEAN DEFAULT false NOT NULL,
    is_service_account BOOLEAN DEFAULT false NOT NULL,
    deleted BOOLEAN DEFAULT false NOT NULL,
    CONSTRAINT pk_users PRIMARY KEY (id)
);
CREATE UNIQUE INDEX ix_users_email_living ON users (lower(email)) WHERE NOT deleted AND email <> '';
CREATE UNIQUE INDEX ix_users_username_living ON users (lower(username)) WHERE NOT deleted;
CREATE TABLE api_keys (
    id TEXT NOT NULL,
    user_id UUID NOT NULL,
    hashed_secret BYTEA NOT NULL,
    last_used TIMESTAMP WITH TIME ZONE NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    login_type TEXT NOT NULL,
    lifetime_seconds BIGINT NOT NULL,
    ip_address TEXT DEFAULT '' NOT NULL,
    token_name TEXT DEFAULT '' NOT NULL,
    scopes TEXT[] DEFAULT '{coder:all}' NOT NULL,
    allow_list TEXT[] DEFAULT '{*:*}' NOT NULL,
    CONSTRAINT pk_api_keys PRIMARY KEY (id),
    CONSTRAINT fk_api_keys_user_id FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX ix_api_keys_token_name ON api_keys (user_id, token_name) WHERE login_type = 'token';
CREATE INDEX ix_api_keys_user_id ON api_keys (user_id);
CREATE TABLE custom_roles (
    id UUID NOT NULL,
    organization_id UUID,
    name TEXT NOT NULL,
    display_name TEXT DEFAULT '' NOT NULL,
    permissions JSONB DEFAULT '{}'::jsonb NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_custom_roles PRIMARY KEY (id),
    CONSTRAINT uq_custom_roles_organization_id_name UNIQUE (organization_id, name),
    CONSTRAINT fk_custom_roles_organization_id FOREIGN KEY(organization_id) REFERENCES organizations (id) ON DELETE CASCADE
);
CREATE TABLE files (
    id UUID NOT NULL,
    hash TEXT NOT NULL,
    created_by UUID NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    mimetype TEXT NOT NULL,
    data BYTEA NOT NULL,
    CONSTRAINT pk_files PRIMARY KEY (id),
    CONSTRAINT uq_files_hash_created_by UNIQUE (hash, created_by),
    CONSTRAINT fk_files_created_by FOREIGN KEY(created_by) REFERENCES users (id)
);
CREATE TABLE git_ssh_keys (
    user_id UUID NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    private_key TEXT NOT NULL,
    public_key TEXT NOT NULL,
    CONSTRAINT pk_git_ssh_keys PRIMARY KEY (user_id),
    CONSTRAINT fk_git_ssh_keys_user_id FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE TABLE groups (
    id UUID NOT NULL,
    organization_id UUID NOT NULL,
    name TEXT NOT NULL,
    display_name TEXT DEFAULT '' NOT NULL,
    avatar_url TEXT DEFAULT '' NOT NULL,
    quota_allowance INTEGER DEFAULT '0' NOT NULL,
    source TEXT DEFAULT 'user' NOT NULL,
    CONSTRAINT pk_groups PRIMARY KEY (id),
    CONSTRAINT uq_groups_organization_id_name UNIQUE (organization_id, name),
    CONSTRAINT fk_groups_organization_id FOREIGN KEY(organization_id) REFERENCES organizations (id) ON DELETE CASCADE
);
CREATE TABLE inbox_notifications (
    id UUID NOT NULL,
    user_id UUID NOT NULL,
    template_id UUID NOT NULL,
    targets TEXT[] DEFAULT '{}' NOT NULL,
    title TEXT NOT NULL,
    content TEXT NOT NULL,
    icon TEXT DEFAULT '' NOT NULL,
    actions JSONB DEFAULT '[]'::jsonb NOT NULL,
    read_at TIMESTAMP WITH TIME ZONE,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_inbox_notifications PRIMARY KEY (id),
    CONSTRAINT fk_inbox_notifications_user_id FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX ix_inbox_notifications_user_id_created_at ON inbox_notifications (user_id, created_at);
CREATE TABLE organization_members (
    organization_id UUID NOT NULL,
    user_id UUID NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    roles TEXT[] DEFAULT '{}' NOT NULL,
    CONSTRAINT pk_organization_members PRIMARY KEY (organization_id, user_id),
    CONSTRAINT fk_organization_members_organization_id FOREIGN KEY(organization_id) REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT fk_organization_members_user_id FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX ix_organization_members_user_id ON organization_members (user_id);
CREATE TABLE user_configs (
    user_id UUID NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    CONSTRAINT pk_user_configs PRIMARY KEY (user_id, key),
    CONSTRAINT fk_user_configs_user_id FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE TABLE user_links (
    user_id UUID NOT NULL,
    login_type TEXT NOT NULL,
    linked_id TEXT DEFAULT '' NOT NULL,
    oauth_access_token TEXT DEFAULT '' NOT NULL,
    oauth_refresh_token TEXT DEFAULT '' NOT NULL,
    oauth_expiry TIMESTAMP WITH TIME ZONE,
    claims JSONB DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT pk_user_links PRIMARY KEY (user_id, login_type),
    CONSTRAINT fk_user_links_user_id FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE TABLE group_members (
    group_id UUID NOT NULL,
    user_id UUID NOT NULL,
    CONSTRAINT pk_group_members PRIMARY KEY (group_id, user_id),
    CONSTRAINT fk_group_members_group_id FOREIGN KEY(group_id) REFERENCES groups (id) ON DELETE CASCADE,
    CONSTRAINT fk_group_members_user_id FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX ix_group_members_user_id ON group_members (user_id);
"""


def upgrade() -> None:
    for statement in _SQL.split(";\n"):
        if statement.strip():
            op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("restore a backup instead")
