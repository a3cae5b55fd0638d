"""Settings: the database and retention of records."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from coder.base.secret import Secret
from coder.coderd.config.groups import GENERAL, RETENTION
from coder.coderd.config.setting import concern, setting


@concern(GENERAL)
@dataclass(frozen=True, kw_only=True)
class PostgresSettings:
    """The database."""

    postgres_url: Secret = setting(
        Secret(""),
        "Postgres Connection URL",
        "URL of a PostgreSQL database; empty starts a built-in one.",
        env="CODER_PG_CONNECTION_URL",
    )
    postgres_auth: str = setting(
        "password",
        "Postgres Auth",
        "Authentication method: password, or awsiamrds, which signs each login with AWS credentials.",
        env="CODER_PG_AUTH",
        yaml="pgAuth",
        path="pg_auth",
        enum=("password", "awsiamrds"),
    )
    postgres_conn_max_open: int = setting(
        10,
        "Postgres Connection Max Open",
        "Maximum number of database connections; one more listens for notifications.",
        env="CODER_PG_CONN_MAX_OPEN",
        yaml="pgConnMaxOpen",
        path="pg_conn_max_open",
    )
    postgres_conn_max_idle: str = setting(
        "auto",
        "Postgres Connection Max Idle",
        "Connections kept when idle; auto keeps as many as may be open.",
        env="CODER_PG_CONN_MAX_IDLE",
        yaml="pgConnMaxIdle",
        path="pg_conn_max_idle",
    )
    postgres_bin_dir: str = setting(
        "",
        "Postgres Bin Dir",
        "Folder of PostgreSQL programs for the built-in database.",
        env="CODER_PG_BIN_DIR",
        hidden=True,
    )
    ephemeral: bool = setting(
        False,
        "Ephemeral Deployment",
        "Keep nothing: the built-in database is removed at exit.",
        yaml="ephemeralDeployment",
        path="ephemeral_deployment?",
        hidden=True,
    )
    cache_dir: Path = setting(
        Path("~/.cache/coder"),
        "Cache Directory",
        "Directory for files that can be recreated; it may be emptied while the server is stopped.",
        env="CODER_CACHE_DIRECTORY",
        yaml="cacheDir",
        path="cache_directory",
    )
    external_token_encryption_keys: tuple[str, ...] = setting(
        (),
        "External Token Encryption Keys",
        "Keys of 32 bytes in Base64 that encrypt secrets in the database. The first one encrypts, all of them decrypt.",
        secret=True,
        enterprise=True,
    )


@concern(RETENTION)
@dataclass(frozen=True, kw_only=True)
class RetentionSettings:
    """Retention of records."""

    audit_logs_retention: timedelta = setting(
        timedelta(),
        "Audit Logs Retention",
        "Audit entries older than this are deleted; 0 keeps them.",
        yaml="audit_logs",
        path="retention.audit_logs",
        shown="0",
    )
    connection_logs_retention: timedelta = setting(
        timedelta(),
        "Connection Logs Retention",
        "Connection entries older than this are deleted; 0 keeps them.",
        yaml="connection_logs",
        path="retention.connection_logs",
        shown="0",
    )
    api_keys_retention: timedelta = setting(
        timedelta(days=7),
        "API Keys Retention",
        "Delete expired keys after this long; 0 keeps them.",
        yaml="api_keys",
        path="retention.api_keys",
        shown="7d",
    )
    workspace_agent_logs_retention: timedelta = setting(
        timedelta(days=7),
        "Workspace Agent Logs Retention",
        "Delete logs of agents that were not connected for this long; 0 keeps them.",
        yaml="workspace_agent_logs",
        path="retention.workspace_agent_logs",
        shown="7d",
    )
    boundary_log_retention: timedelta = setting(
        timedelta(),
        "Boundary Log Retention",
        "Without effect: there are no boundary logs.",
        yaml="boundary_logs",
        path="retention.boundary_logs",
        shown="0",
    )
