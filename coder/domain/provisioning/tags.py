"""Provisioner tags: normalization, and the match between daemons and jobs.

A job runs on a daemon whose tags include all of the job's own. An untagged job prefers untagged daemons: a tagged
daemon takes it only while no untagged daemon of its organization is connected (`TagRule` in `queue.py`), and never
under the strict rule (today's upstream, `--provisioner-strict-tags`). Reserved keys: `scope` (`organization` or `user`)
and `owner` (user id, or empty for the organization).

The queue uses the same rule in SQL (`acquire_job`, coder/coderd/store/provisioning/jobs.py); this form wakes daemons
and explains why a job is pending. tests/unit/coderd/store/provisioning/test_queue_as_sql.py holds the two equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

Tags = Mapping[str, str]

SCOPE = "scope"
OWNER = "owner"
SCOPE_ORGANIZATION = "organization"
SCOPE_USER = "user"

UNTAGGED: Tags = {SCOPE: SCOPE_ORGANIZATION, OWNER: ""}
"""Meaning of an empty set of tags."""

NIL_OWNER = "00000000-0000-0000-0000-000000000000"
"""Owner of user-scoped daemons whose key names no user."""


def normalize_tags(owner_id: str, *layers: Tags | None) -> dict[str, str]:
    """Merge `layers` (later ones win, empty values are dropped) and normalize scope and owner.

    A missing or unknown scope is `organization` with an empty owner; scope `user` belongs to `owner_id`, whatever the
    layers contain.
    """
    merged: dict[str, str] = {}
    for layer in layers:
        merged.update({key: value for key, value in (layer or {}).items() if value})
    if merged.get(SCOPE) == SCOPE_USER:
        merged[OWNER] = owner_id
    else:
        merged.update(UNTAGGED)
    return merged


@dataclass(frozen=True, slots=True)
class MissingTag:
    """The daemon has no tag `key`."""

    key: str
    required: str


@dataclass(frozen=True, slots=True)
class WrongTag:
    """The daemon has another value for `key`."""

    key: str
    required: str
    actual: str


Reservation = Literal["", "served", "strict"]
"""Why tagged daemons leave an untagged job alone: an untagged daemon is connected, or the strict rule; empty when they
may take it."""


@dataclass(frozen=True, slots=True)
class ExtraTags:
    """The daemon has tags, the job has none, and is left to untagged daemons."""

    keys: tuple[str, ...]
    because: Reservation = "strict"


Mismatch = MissingTag | WrongTag | ExtraTags


def is_untagged(tags: Tags) -> bool:
    """Return whether a job or daemon has no tags besides those of every organization job."""
    return dict(tags) == dict(UNTAGGED)


def explain_mismatch(job: Tags, daemon: Tags, *, reservation: Reservation = "") -> list[Mismatch]:
    """Return every reason why a daemon with tags `daemon` must not run a job with tags `job`; empty when it may."""
    reasons: list[Mismatch] = []
    for key, required in sorted(job.items()):
        if key not in daemon:
            reasons.append(MissingTag(key, required))
        elif daemon[key] != required:
            reasons.append(WrongTag(key, required, daemon[key]))
    if reservation and is_untagged(job) and (extra := sorted(set(daemon) - set(job))):
        reasons.append(ExtraTags(tuple(extra), reservation))
    return reasons


def tags_match(job: Tags, daemon: Tags, *, strict: bool = False) -> bool:
    """Return whether a daemon may run a job, by tags alone: without the strict rule, perhaps."""
    return not explain_mismatch(job, daemon, reservation="strict" if strict else "")


def parse_tag(text: str) -> tuple[str, str] | None:
    """Parse `key=value`; None when there is no `=`."""
    key, separator, value = text.partition("=")
    return (key, value) if separator else None


TagFault = Literal["empty key", "NUL byte"]


def find_tag_fault(tags: Iterable[tuple[str, str]]) -> tuple[str, TagFault] | None:
    """Return the first tag that Postgres or users could not handle, and its fault."""
    for key, value in tags:
        if not key:
            return key, "empty key"
        if "\x00" in key or "\x00" in value:
            return key, "NUL byte"
    return None


def explain_tags(tags: Mapping[str, str] | None) -> str:
    """Return the same as a sentence; empty without a fault."""
    fault = find_tag_fault((tags or {}).items())
    return "" if fault is None else f"tag {fault[0]!r}: {fault[1]}"
