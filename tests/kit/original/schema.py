"""A database with the original's schema, made from its description (tests/data/original/schema.tsv).

The description lacks the columns of unlogged and renamed tables; `EXTRA` has those that the import reads.
"""

# ruff: noqa: S608 (names and values of these tests)
from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

DESCRIPTION = Path(__file__).parents[2] / "data" / "original" / "schema.tsv"
MIGRATION = 512
"""Number that the made databases carry; the import reads it for its report alone."""
_ZERO = "'0001-01-01 00:00:00+00'"
EXTRA = {
    "workspace_agent_metadata": (
        "workspace_agent_id uuid NOT NULL, display_name varchar(127) NOT NULL, key varchar(127) NOT NULL, "
        "script varchar(65535) NOT NULL, value varchar(65535) NOT NULL DEFAULT '', "
        "error varchar(65535) NOT NULL DEFAULT '', timeout bigint NOT NULL, \"interval\" bigint NOT NULL, "
        f"collected_at timestamptz NOT NULL DEFAULT {_ZERO}, display_order integer NOT NULL DEFAULT 0"
    ),
    "workspace_agent_logs": (
        "agent_id uuid NOT NULL, created_at timestamptz NOT NULL, output varchar(1024) NOT NULL, "
        "id bigint NOT NULL, level log_level NOT NULL DEFAULT 'info', log_source_id uuid NOT NULL"
    ),
    "chat_heartbeats": "chat_id uuid NOT NULL, runner_id uuid NOT NULL",
    "tailnet_coordinators": "id uuid NOT NULL",
    "tailnet_peers": "id uuid NOT NULL, coordinator_id uuid NOT NULL",
    "tailnet_tunnels": "coordinator_id uuid NOT NULL, src_id uuid NOT NULL, dst_id uuid NOT NULL",
    "workspace_app_audit_sessions": "id uuid NOT NULL, agent_id uuid NOT NULL",
}
GENERATED = {("provisioner_jobs", "job_status"), ("aibridge_interceptions", "session_id")}
"""Columns that the original computes; here they are ordinary and nullable."""


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    is_nullable: bool


@dataclass(slots=True)
class Description:
    """What the file says."""

    tables: dict[str, list[Column]] = field(default_factory=dict)
    primary: list[tuple[str, str]] = field(default_factory=list)
    foreign: list[tuple[str, str, str, str]] = field(default_factory=list)
    enumerations: dict[str, list[str]] = field(default_factory=dict)


@cache
def describe() -> Description:
    """Return the description; lines that are pieces of an expression are left out."""
    found = Description()
    for line in DESCRIPTION.read_text().splitlines():
        kind, *fields = line.split("\t")
        if kind == "column" and fields[1] not in {"WHEN", "ELSE"}:
            found.tables.setdefault(fields[0], []).append(Column(fields[1], fields[2], fields[3] == "yes"))
        elif kind == "primary":
            found.primary.append((fields[0], fields[1]))
        elif kind == "foreign":
            found.foreign.append((fields[0], fields[1], fields[2], fields[3]))
        elif kind == "enum":
            found.enumerations[fields[0]] = fields[1].split(" ")
    return found


def statements() -> list[str]:
    """Return the statements that make the schema: types, tables, primary and foreign keys."""
    described = describe()
    made = [
        f"CREATE TYPE {name} AS ENUM ({', '.join(repr(value) for value in values)})"
        for name, values in described.enumerations.items()
    ]
    made.append("CREATE TABLE schema_migrations (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL)")
    made.append(f"INSERT INTO schema_migrations VALUES ({MIGRATION}, false)")
    for table, columns in described.tables.items():
        made.append(f"CREATE TABLE {table} ({', '.join(_column(table, column) for column in columns)})")
    made += [f"CREATE TABLE {table} ({columns})" for table, columns in EXTRA.items()]
    made += [f"ALTER TABLE {table} ADD PRIMARY KEY ({columns})" for table, columns in described.primary]
    # Keys that refer to several columns need a unique constraint of these.
    pairs = {
        (table, columns) for _, _, table, columns in described.foreign if (table, columns) not in described.primary
    }
    made += [f"ALTER TABLE {table} ADD UNIQUE ({columns})" for table, columns in sorted(pairs)]
    made += [
        f"ALTER TABLE {table} ADD FOREIGN KEY ({columns}) REFERENCES {target} ({keys})"
        for table, columns, target, keys in described.foreign
        if table not in EXTRA and target not in EXTRA
    ]
    return made


def _column(table: str, column: Column) -> str:
    required = "" if column.is_nullable or (table, column.name) in GENERATED else " NOT NULL"
    return f'"{column.name}" {column.type}{required}'
