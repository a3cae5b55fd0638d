"""One step of the import: the rows of one of our tables, as a query on the original's database.

Expressions run at the source, whose table has the alias `s`, so that the values arrive in the types of our columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

_FIRST_DAY = "'0001-01-02 00:00:00+00'::timestamptz"
"""Later than Go's zero time, which the original stores where there is no time."""
ZERO_TIME = "'0001-01-01 00:00:00+00'::timestamptz"
"""Go's zero time."""

PREBUILDS_USER = "'c42fdf75-3097-471c-8c33-fb52454d81c0'"
"""The system's user, which both programs have."""


_LAST_DAY = "'9999-12-31 00:00:00+00'::timestamptz"
"""No later than Python's last time, and before `infinity`."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Reason why rows are not taken, or not with all their values."""

    condition: str
    """Condition at the source for these rows."""
    text: str
    name: str
    """Expression for the name that the report lists."""


@dataclass(frozen=True, slots=True)
class Step:
    """Rows of one of our tables."""

    target: str
    """Our table."""
    source: str
    """FROM clause at the source; the main table has the alias `s`."""
    columns: Mapping[str, str]
    """Expressions at the source by our column."""
    where: str = ""
    """Condition for the rows that are taken."""
    left_out: str = ""
    """Reason for the rows that are not."""
    refusal: Reason | None = None
    """Rows among those of `where` that are not taken either."""
    changes: tuple[Reason, ...] = ()
    """Rows that are taken without some of their values."""
    name: str = ""
    """Name in the report and in the progress record; defaults to the target."""
    cursor: str = ""
    """Column whose order the rows are read in, so that a stopped import continues after its last value."""
    natural_key: tuple[str, ...] = ()
    """Columns that identify a row whose key this database generates."""
    batch: int = 1000
    """Rows of one transaction. Few where a row may have megabytes."""
    sealed: Mapping[str, str] = field(default_factory=dict)
    """Expressions for the id of the encryption key, by our column."""
    after_batch: str = ""
    """Statement after each batch, which is in the table `import_batch`."""

    @property
    def label(self) -> str:
        return self.name or self.target

    @property
    def tables(self) -> tuple[str, ...]:
        """The original's tables that this step reads, the main one first."""
        text = " ".join([f"FROM {self.source}", *self.columns.values()])
        found = re.findall(r"\b(?:FROM|JOIN) ([a-z][a-z0-9_]*)\b(?! *\()", text)
        return tuple(dict.fromkeys(found))

    def select(self, *, with_keys: bool = False) -> str:
        """Return the query of the step's rows; `with_keys` adds the ids of encryption keys as `key_of_<column>`."""
        columns = [f"{expression} AS {name}" for name, expression in self.columns.items()]
        if with_keys:
            columns += [f"{expression} AS key_of_{name}" for name, expression in self.sealed.items()]
        condition = f" WHERE {self.condition}" if self.condition else ""
        return f"SELECT {', '.join(columns)} FROM {self.source}{condition}"  # noqa: S608

    @property
    def condition(self) -> str:
        """Return the condition for the rows that are taken, empty for all rows."""
        parts = [self.where, f"NOT ({self.refusal.condition})" if self.refusal else ""]
        return " AND ".join(filter(None, parts))

    def count(self) -> str:
        """Return the query of the numbers of rows: all that concern the step, and those that are taken."""
        concerned = f" WHERE {self.where}" if self.where and not self.left_out else ""
        taken = self.condition or "true"
        return f"SELECT count(*), count(*) FILTER (WHERE {taken}) FROM {self.source}{concerned}"  # noqa: S608


def quoted(name: str) -> str:
    """Return a name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def same(names: str, **others: str) -> dict[str, str]:
    """Return columns that both databases have, separated by spaces, and expressions for others."""
    return {**{name: f"s.{name}" for name in names.split()}, **others}


def text(name: str) -> str:
    """Return a column of an enumeration as text."""
    return f"s.{name}::text"


def texts(name: str) -> str:
    """Return a nullable array of an enumeration or of UUIDs as an array of texts."""
    return f"COALESCE(s.{name}::text[], '{{}}')"


def filled(name: str, default: str = "''") -> str:
    """Return a nullable column with a default."""
    return f"COALESCE(s.{name}, {default})"


def milliseconds(name: str) -> str:
    """Return a duration, which the original stores in nanoseconds."""
    return f"(s.{name} / 1000000)"


def known_time(name: str) -> str:
    """Return a time, NULL for Go's zero time and for times that Python does not have."""
    return f"CASE WHEN s.{name} BETWEEN {_FIRST_DAY} AND {_LAST_DAY} THEN s.{name} END"


def is_representable(expression: str) -> str:
    """Return the condition that Python has this time: from year 1 to 9999."""
    return f"{expression} BETWEEN {ZERO_TIME} AND {_LAST_DAY}"


def representable(expression: str) -> str:
    """Return a time, the nearest one for times that Python does not have: what never expires must not have expired."""
    # GREATEST and LEAST would make a time of NULL.
    return (
        f"CASE WHEN {expression} < {ZERO_TIME} THEN {ZERO_TIME} WHEN {expression} > {_LAST_DAY} THEN {_LAST_DAY} "
        f"ELSE {expression} END"
    )


def known_user(name: str) -> str:
    """Return a user's id; the prebuilds user stands for one that does not exist, such as the nil id of the system."""
    return f"COALESCE((SELECT u.id FROM users u WHERE u.id = s.{name}), {PREBUILDS_USER}::uuid)"  # noqa: S608


def ascii_text(name: str) -> str:
    """Return bytes that hold ASCII."""
    return f"encode(s.{name}, 'escape')"


def as_array(expression: str) -> str:
    """Return a JSON array, empty for every other value."""
    return f"(CASE jsonb_typeof({expression}) WHEN 'array' THEN {expression} ELSE '[]'::jsonb END)"


def as_object(expression: str) -> str:
    """Return a JSON object, empty for every other value."""
    return f"(CASE jsonb_typeof({expression}) WHEN 'object' THEN {expression} ELSE '{{}}'::jsonb END)"


def access_list(name: str, roles: Mapping[str, Iterable[str]]) -> str:
    """Return an access list as `{id: role}`: the original stores actions, plain or below `permissions`.

    `roles`: the actions that an entry has at least for each role, the highest first. Entries with fewer actions than
    every role's are left out, since each role would grant more.
    """
    entries = _entries(name, roles)
    return (
        "COALESCE((SELECT jsonb_object_agg(l.key, l.role) "  # noqa: S608
        f"FROM ({entries}) l WHERE l.role IS NOT NULL), '{{}}'::jsonb)"
    )


def other_actions(roles: Mapping[str, Iterable[str]], name: str) -> tuple[Reason, ...]:
    """Return the reasons for rows with something in an access list that `access_list` leaves out."""
    known = "'[]'::jsonb, 'null'::jsonb"
    unknown = f"l.role IS NULL AND COALESCE(l.actions, 'null'::jsonb) NOT IN ({known})"
    return tuple(
        Reason(
            f"jsonb_typeof(s.{column}) NOT IN ('object', 'null') OR "
            f"EXISTS (SELECT FROM ({_entries(column, roles)}) l WHERE {unknown})",
            f"{column} has entries that are not taken: their actions are those of no role, and each role grants more",
            name,
        )
        for column in ("user_acl", "group_acl")
    )


def _entries(name: str, roles: Mapping[str, Iterable[str]]) -> str:
    given = "CASE jsonb_typeof(a.value) WHEN 'object' THEN a.value -> 'permissions' ELSE a.value END AS actions"
    actions = as_array("e.actions")
    cases = " ".join(
        f"WHEN {actions} ?& ARRAY[{', '.join(repr(action) for action in sorted(needed))}] THEN '{role}'"
        for role, needed in roles.items()
    )
    highest = next(iter(roles))
    return (
        f"SELECT e.key, e.actions, CASE WHEN {actions} ? '*' THEN '{highest}' {cases} END AS role "  # noqa: S608
        f"FROM (SELECT a.key, {given} FROM jsonb_each({as_object(f's.{name}')}) a) e"
    )


_NEGATED = "COALESCE(NULLIF(p.value -> 'negate', 'null'::jsonb), 'false'::jsonb) <> 'false'::jsonb"


def permissions(name: str, *, negate: bool) -> str:
    """Return permissions of a role as `{resource: [actions]}`, those that it grants or those that it denies."""
    wanted = "" if negate else "NOT "
    listed = (  # names of columns from this package
        "SELECT p.value ->> 'resource_type' AS kind, jsonb_agg(DISTINCT p.value ->> 'action') AS actions "  # noqa: S608
        f"FROM jsonb_array_elements({as_array(f's.{name}')}) p WHERE {wanted}({_NEGATED}) GROUP BY 1"
    )
    return f"COALESCE((SELECT jsonb_object_agg(g.kind, g.actions) FROM ({listed}) g), '{{}}'::jsonb)"  # noqa: S608


def denies(*names: str) -> str:
    """Return the condition that one of these columns with permissions of a role denies an action."""
    return _has_permission(names, _NEGATED)


def grants(*names: str) -> str:
    """Return the condition that one of these columns with permissions of a role grants an action."""
    return _has_permission(names, f"NOT ({_NEGATED})")


def is_malformed(*names: str) -> str:
    """Return the condition that one of these columns is no list of permissions."""
    nothing = "'null'::jsonb, '{}'::jsonb"
    lists = [f"jsonb_typeof(s.{name}) <> 'array' AND s.{name} NOT IN ({nothing})" for name in names]
    texts = [f"COALESCE(jsonb_typeof(p.value -> '{field}'), '') <> 'string'" for field in ("resource_type", "action")]
    flag = "COALESCE(jsonb_typeof(p.value -> 'negate'), 'null') NOT IN ('boolean', 'null')"
    return " OR ".join([*lists, _has_permission(names, " OR ".join([*texts, flag]))])


def _has_permission(names: Iterable[str], condition: str) -> str:
    return " OR ".join(
        f"EXISTS (SELECT FROM jsonb_array_elements({as_array(f's.{name}')}) p WHERE {condition})" for name in names
    )
