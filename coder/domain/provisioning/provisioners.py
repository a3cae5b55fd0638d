"""Provisioner daemons: reserved keys, status, and protocol compatibility."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

BUILT_IN_KEY = UUID(int=1)
USER_AUTH_KEY = UUID(int=2)
PSK_KEY = UUID(int=3)
RESERVED_KEYS: dict[UUID, str] = {BUILT_IN_KEY: "built-in", USER_AUTH_KEY: "user-auth", PSK_KEY: "psk"}
"""Pseudo keys of daemons without a key; keys of these names cannot be created or deleted."""

MAX_KEY_NAME = 64
_KEY_NAME = re.compile(r"[a-zA-Z0-9]+(?:[-_][a-zA-Z0-9]+)*")

PROVISIONERS: tuple[str, ...] = ("terraform", "echo")

HEARTBEAT = timedelta(seconds=30)
"""Interval at which the server records a connected daemon."""
STALE_AFTER = timedelta(seconds=90)
"""Silence after which a daemon is offline (upstream's value: three heartbeats)."""
SILENT_AFTER = timedelta(seconds=45)
"""Silence over the mesh after which a daemon that joined it is unreachable: more than one poll."""
FORGET_AFTER = timedelta(days=7)
"""Time after which unseen daemons are deleted."""

DaemonStatus = Literal["offline", "idle", "busy"]
DAEMON_STATUSES: tuple[DaemonStatus, ...] = ("offline", "idle", "busy")


def is_stale(last_seen_at: datetime | None, now: datetime) -> bool:
    return last_seen_at is None or now - last_seen_at >= STALE_AFTER


def is_unreachable(since: datetime | None, now: datetime) -> bool:
    """Return whether a daemon is unreachable. `since`: time of its first unanswered poll."""
    return since is not None and now - since >= SILENT_AFTER


def daemon_status(last_seen_at: datetime | None, *, busy: bool, now: datetime) -> DaemonStatus:
    """Return a daemon's status. `busy`: the daemon has a running job."""
    if is_stale(last_seen_at, now):
        return "offline"
    return "busy" if busy else "idle"


def explain_incompatible(version: str, supported: str) -> str | None:
    """Return why a daemon that speaks `version` is incompatible with a server that speaks `supported`; None if
    compatible.

    Compatible: the same major, and a minor that is not newer than ours (docs/protocol/rpc.md#endpoints).
    """
    parsed, ours = _parse(version), _parse(supported)
    if parsed is None or ours is None:
        return f"invalid version string: {version}"
    if parsed[0] != ours[0]:
        return f"server is at version {supported}, behind requested major version {version}"
    if parsed[1] > ours[1]:
        return f"server is at version {supported}, behind requested minor version {version}"
    return None


def _parse(text: str) -> tuple[int, int] | None:
    major, dot, minor = text.partition(".")
    if not (dot and major.isascii() and major.isdigit() and minor.isascii() and minor.isdigit()):
        return None
    return int(major), int(minor)


def is_reserved_key(name: str) -> bool:
    return name.lower() in RESERVED_KEYS.values()


def is_key_name(name: str) -> bool:
    """Return whether a daemon key may have this name."""
    return len(name) <= MAX_KEY_NAME and _KEY_NAME.fullmatch(name) is not None
