"""Reasons why a job is pending: one for every daemon, the nearest miss first, and the change that would help.

A daemon may be unfit in many ways; users need the first one to fix. The reported reason is the one that would remain if
all lesser ones were fixed (organization, then kind, scope, tags, key, then being offline, unreachable over the mesh,
busy). The dispatcher assigns the job to a daemon that requests work if and only if the reason is in `MAY_TAKE`: a
property test holds this equal to the SQL of `acquire_job` (coder/coderd/store/provisioning/jobs.py).
`queue_forecast.py` estimates the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

from coder.domain.provisioning.provisioners import is_stale, is_unreachable
from coder.domain.provisioning.queue import (
    DEFAULT_RULE,
    DaemonOffer,
    JobRequirements,
    OtherOrganization,
    OtherProvisioner,
    TagRule,
    Unfit,
    explain_unfit,
    served_by,
)
from coder.domain.provisioning.tags import OWNER, SCOPE, SCOPE_USER, ExtraTags, MissingTag, Tags, WrongTag

ReasonCode = Literal[
    "ready",
    "busy",
    "unreachable",
    "offline",
    "key_revoked",
    "draining",
    "yields",
    "reserved",
    "lacks_tag",
    "wrong_tag",
    "scope",
    "other_provisioner",
    "other_organization",
]

MAY_TAKE: frozenset[ReasonCode] = frozenset({"ready", "busy", "unreachable", "offline", "key_revoked"})
"""Reasons under which the daemon's settings allow the job."""
TEMPORARY_REASONS: frozenset[ReasonCode] = frozenset({"ready", "busy", "unreachable", "offline"})
"""Reasons under which the daemon will run the job eventually; a daemon whose key was deleted will not be readmitted."""

_ORDER: tuple[ReasonCode, ...] = (
    "ready",
    "busy",
    "unreachable",
    "offline",
    "key_revoked",
    "draining",
    "yields",
    "reserved",
    "wrong_tag",
    "lacks_tag",
    "scope",
    "other_provisioner",
    "other_organization",
)
# From the nearest miss to the farthest; daemons with the same reason are ordered by the number of misses.


@dataclass(frozen=True, slots=True)
class Daemon:
    """Daemon, with the fields that matter for pending jobs."""

    id: UUID
    name: str
    offer: DaemonOffer
    last_seen_at: datetime | None
    job_id: UUID | None = None
    """Id of its running job."""
    job_started_at: datetime | None = None
    key_revoked: bool = False
    unreachable_since: datetime | None = None
    """Time since which its link is open without answers over the mesh; None if it answers, or is too old to join."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Reason why one daemon does not run the job right now."""

    daemon: Daemon
    code: ReasonCode
    key: str = ""
    """Tag that the reason is about."""
    wanted: str = ""
    found: str = ""
    misses: int = 0
    """Number of changes needed before the daemon may run the job."""

    @property
    def may_take(self) -> bool:
        """Return whether the dispatcher assigns the job to this daemon on request."""
        return self.code in MAY_TAKE


def tag_rule(daemons: Iterable[Daemon], now: datetime, *, strict: bool) -> TagRule:
    """Return the rule for untagged jobs. A daemon is connected if its heartbeat is fresh and its key exists; a draining
    one offers no provisioner."""
    connected = (item.offer for item in daemons if not (item.key_revoked or is_stale(item.last_seen_at, now)))
    return TagRule(strict, served_by(connected))


def explain_waiting(
    job: JobRequirements, daemons: Iterable[Daemon], now: datetime, *, rule: TagRule = DEFAULT_RULE
) -> list[Reason]:
    """Return one reason for each daemon, the nearest miss first."""
    reasons = [explain_daemon(job, daemon, now, rule=rule) for daemon in daemons]
    return sorted(reasons, key=lambda item: (_ORDER.index(item.code), item.misses, item.daemon.name, item.daemon.id))


def explain_daemon(job: JobRequirements, daemon: Daemon, now: datetime, *, rule: TagRule = DEFAULT_RULE) -> Reason:
    """Return the decisive reason for one daemon."""
    unfit = explain_unfit(job, daemon.offer, rule=rule)
    if unfit:
        return _worst(daemon, unfit)
    if daemon.key_revoked:
        return Reason(daemon, "key_revoked")
    if is_stale(daemon.last_seen_at, now):
        return Reason(daemon, "offline")
    if is_unreachable(daemon.unreachable_since, now):
        return Reason(daemon, "unreachable")
    return Reason(daemon, "busy" if daemon.job_id is not None else "ready")


def _worst(daemon: Daemon, unfit: Sequence[Unfit]) -> Reason:
    reasons = [_reason(daemon, item, len(unfit)) for item in unfit]
    return max(reasons, key=lambda item: _ORDER.index(item.code))


def _reason(daemon: Daemon, unfit: Unfit, misses: int) -> Reason:
    match unfit:
        case OtherOrganization():
            return Reason(daemon, "other_organization", misses=misses)
        case OtherProvisioner(_, ()):
            return Reason(daemon, "draining", misses=misses)
        case OtherProvisioner(required, supported):
            return Reason(daemon, "other_provisioner", wanted=required, found=", ".join(supported), misses=misses)
        case ExtraTags(keys, because):
            kept: ReasonCode = "reserved" if because == "strict" else "yields"
            return Reason(daemon, kept, key=", ".join(keys), misses=misses)
        case WrongTag(key, required, actual):
            code: ReasonCode = "scope" if key in {SCOPE, OWNER} else "wrong_tag"
            return Reason(daemon, code, key, required, actual, misses)
        case MissingTag(key, required):
            return Reason(daemon, "scope" if key in {SCOPE, OWNER} else "lacks_tag", key, required, misses=misses)


def explain_text(reason: Reason) -> str:
    """Return the reason as a sentence without its subject, e.g. "lacks tag gpu=yes"."""
    seen, job_id = reason.daemon.last_seen_at, reason.daemon.job_id
    match reason.code:
        case "ready":
            return "is idle and may take it"
        case "busy":
            return f"is busy with job {job_id}"
        case "offline":
            return f"is offline since {_when(seen)}" if seen else "was never connected"
        case "unreachable":
            since = reason.daemon.unreachable_since
            return f"is unreachable over the mesh since {_when(since)}" if since else "is unreachable over the mesh"
        case "key_revoked":
            return "matches, but its provisioner key was deleted"
        case "draining":
            return "is draining: it finishes its job and takes no other"
        case "yields":
            return f"has {reason.key}, and takes jobs without tags only while no untagged provisioner is connected"
        case "reserved":
            return f"is kept for jobs with tags, because it has {reason.key} (--provisioner-strict-tags)"
        case "lacks_tag":
            return f"lacks tag {reason.key}={reason.wanted}{_other_misses(reason)}"
        case "wrong_tag":
            return (
                f"has {reason.key}={reason.found}, the job requires {reason.key}={reason.wanted}{_other_misses(reason)}"
            )
        case "scope":
            return _scope_text(reason)
        case "other_provisioner":
            return f"runs {reason.found or 'nothing'}, the job needs {reason.wanted}"
        case "other_organization":
            return "serves another organization"


def _scope_text(reason: Reason) -> str:
    daemon_tags = reason.daemon.offer.tags
    if daemon_tags.get(SCOPE) == SCOPE_USER:
        return f"runs jobs of the user {daemon_tags.get(OWNER, '')} only (scope=user)"
    return "runs jobs of the organization, this one requires a provisioner of its owner (scope=user)"


def _other_misses(reason: Reason) -> str:
    return f" and {reason.misses - 1} more" if reason.misses > 1 else ""


def _when(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")


Verdict = Literal["not_waiting", "starts_now", "queued", "all_offline", "nobody"]


@dataclass(frozen=True, slots=True)
class Remedy:
    """Change that would let a daemon run the job."""

    tags: Tags
    """Tags of an eligible daemon, without the tags every daemon has."""
    command: str
    """Command that starts such a daemon."""
    nearest: str = ""
    """Daemon with the fewest misses, and what it lacks."""
    notes: tuple[str, ...] = field(default=())


def judge(reasons: Sequence[Reason], *, starts_now: bool) -> Verdict:
    """Return the prospects of a pending job."""
    if starts_now:
        return "starts_now"
    codes = {reason.code for reason in reasons}
    if codes & {"ready", "busy"}:
        return "queued"
    return "all_offline" if codes & {"offline", "unreachable"} else "nobody"


def find_remedy(job: JobRequirements, reasons: Sequence[Reason]) -> Remedy:
    """Return the tags of a daemon that could run the job, and the command that starts one."""
    tags = {key: value for key, value in sorted(job.tags.items()) if key != OWNER and (key, value) != _EVERYBODY}
    words = ["coder provisioner start", *(f"--tag {key}={_quote(value)}" for key, value in tags.items())]
    notes = []
    if job.tags.get(SCOPE) == SCOPE_USER:
        notes.append(f"The provisioner must be started by the user {job.tags.get(OWNER, '')}.")
    nearest = next((reason for reason in reasons if not reason.may_take and reason.code != "other_organization"), None)
    text = f"{nearest.daemon.name} {explain_text(nearest)}" if nearest is not None else ""
    return Remedy(tags, " ".join(words), text, tuple(notes))


_EVERYBODY = (SCOPE, "organization")


def _quote(value: str) -> str:
    return value if value and all(letter.isalnum() or letter in "._-/:@" for letter in value) else repr(value)
