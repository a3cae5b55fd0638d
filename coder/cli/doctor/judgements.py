"""Judgements of `coder doctor`: findings from measured values. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from coder.base.duration import format_duration
from coder.base.json_types import Json, as_list
from coder.base.version import versions_match
from coder.cli.doctor.findings import Finding, failure, ok, skipped, warning

SKEW_WARNING = timedelta(seconds=30)
"""One period of a sign-in code (TOTP)."""
SKEW_ERROR = timedelta(minutes=5)
EXPIRY_WARNING = timedelta(days=14)
SESSION_WARNING = timedelta(hours=1)
"""A session lasts a day by default and is extended by use."""
_GIB = 1 << 30
LOW_DISK = _GIB
FULL_DISK = 100 << 20


def judge_clock(skew: timedelta | None) -> Finding:
    """`skew`: this machine's time minus the server's, which is exact to a second; None without a date."""
    title = "Clock"
    if skew is None:
        return skipped("clock", title, "the server sends no date")
    distance = abs(skew)
    if distance < SKEW_WARNING:
        return ok("clock", title, "agrees with the server's")
    side = "ahead of" if skew > timedelta() else "behind"
    what = f"this machine's clock is {format_duration(timedelta(seconds=round(distance.total_seconds())))} {side} "
    judge = failure if distance >= SKEW_ERROR else warning
    return judge(
        "clock", title, f"{what}the server's", "Synchronize both clocks, for example with chrony or timesyncd."
    )


def judge_expiry(name: str, title: str, subject: str, expires: datetime, now: datetime) -> Finding:
    """Judge the end of a certificate's validity."""
    left = expires - now
    if left <= timedelta():
        return failure(name, title, f"{subject} expired on {expires:%Y-%m-%d}", "Renew the certificate.")
    if left < EXPIRY_WARNING:
        what = f"{subject} expires in {max(left.days, 0)} days, on {expires:%Y-%m-%d}"
        return warning(name, title, what, "Renew the certificate.")
    return ok(name, title, f"{subject} is valid until {expires:%Y-%m-%d}")


def judge_versions(own: str, server: str) -> Finding:
    title = "Versions"
    if not server:
        return skipped("version", title, f"this program is {own}; the server names no version")
    if versions_match(own, server):
        return ok("version", title, f"this program is {own}, the server {server}")
    return warning(
        "version",
        title,
        f"this program is {own}, the server {server}",
        "Install the server's program: `curl -fsSL <url>/install.sh | sh`.",
    )


def judge_disk(place: str, free: float, total: float) -> Finding:
    """Judge the free bytes of a file system. `place`: the directory and its use."""
    text = f"{place}: {free / _GIB:.1f} of {total / _GIB:.1f} GiB free"
    if free < FULL_DISK:
        return failure("disk", "Disk", text, "Delete files there, or enlarge the file system.")
    if free < LOW_DISK:
        return warning("disk", "Disk", text, "Delete files there, or enlarge the file system.")
    return ok("disk", "Disk", text)


def judge_session(user: str, expires: datetime | None, now: datetime) -> Finding:
    """Judge an accepted session. `expires`: None if it is not known."""
    title = "Session"
    if expires is None or expires - now >= SESSION_WARNING:
        until = "" if expires is None else f", until {expires.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        return ok("session", title, f"signed in as {user}{until}")
    left = format_duration(timedelta(seconds=max(0, round((expires - now).total_seconds()))))
    return warning("session", title, f"the session of {user} expires in {left}", "Sign in again with `coder login`.")


def judge_service(name: str, title: str, unit: str, state: str) -> Finding:
    """Judge the state that `systemctl is-active` prints for a unit; "" if it cannot be asked."""
    if state == "active":
        return ok(name, title, f"{unit} is active")
    if not state:
        return skipped(name, title, f"the state of {unit} is not known: systemd does not answer")
    return failure(name, title, f"{unit} is {state}", f"Read its log: `journalctl -u {unit} -n 50`.")


def judge_schema(reached: str, known: Sequence[str]) -> Finding:
    """Judge the schema's revision against those of this program, oldest first."""
    title = "Schema"
    if reached == known[-1]:
        return ok("schema", title, f"revision {reached}, current")
    if not reached:
        what = "the database has no tables of a deployment"
        return failure("schema", title, what, "Start the server, which creates them, or check the database's URL.")
    if reached not in known:
        what = f"revision {reached} is of a newer release; this program knows {known[-1]}"
        return failure("schema", title, what, "Use the program of that release.")
    missing = len(known) - 1 - known.index(reached)
    what = f"revision {reached}: {missing} migrations are pending"
    return warning("schema", title, what, "Make a backup, then restart the server, which applies them.")


def judge_provisioners(connected: int, queued: int) -> Finding:
    """Judge the number of connected daemons and of waiting jobs."""
    title = "Provisioners"
    if not connected:
        step = "Start the server with --provisioner-daemons=3, or run `coder provisioner start` on another machine."
        return failure("provisioners", title, f"no provisioner is connected, {queued} jobs wait", step)
    return ok("provisioners", title, f"{connected} connected, {queued} jobs wait")


def judge_agent(workspace: str, agent: str, status: str, reason: str, *, is_external: bool) -> Finding:
    """Judge an agent of a running workspace by the API's status and reason."""
    what = f"the agent {agent} of {workspace} is {status}"
    what = f"{what}: {reason}" if reason and status != "connected" else what
    if status == "connected":
        return ok("workspace", "Workspace", what)
    if is_external:
        step = f"Attach the machine: `coder external-workspaces agent-instructions {workspace}` prints the command."
    else:
        step = f"Read the build's and the agent's log: `coder logs {workspace}`."
    judge = warning if status == "connecting" else failure
    return judge("workspace", "Workspace", what, step)


_SECTIONS = {
    "access_url": ("Access URL", "Check --access-url, and the proxy and the firewall in front of the server."),
    "websocket": ("WebSockets", "Let the reverse proxy pass `Upgrade: websocket` on."),
    "database": ("Database latency", "Run `coder doctor` on the server's machine."),
    "derp": ("Relays", "Run `coder netcheck` here and on an agent's machine."),
    "provisioner_daemons": (
        "Provisioners",
        "List them with `coder provisioner list --health`.",
    ),
    "workspace_proxy": ("Workspace proxies", "List them: `coder workspace-proxy ls`."),
}


def judge_health(report: Mapping[str, Json]) -> list[Finding]:
    """Return a finding for each section of the health report."""
    findings = []
    for field, (title, step) in _SECTIONS.items():
        section = report.get(field)
        if not isinstance(section, Mapping):
            continue
        messages = [str(section["error"])] if section.get("error") else []
        messages += [
            str(item.get("message", "")) for item in as_list(section.get("warnings")) if isinstance(item, Mapping)
        ]
        severity = "ok" if section.get("dismissed") else section.get("severity")
        judge = {"error": failure, "warning": warning}.get(str(severity))
        if judge is None:
            findings.append(ok("health", title, "dismissed by an administrator" if section.get("dismissed") else "ok"))
        else:
            findings.append(judge("health", title, "; ".join(messages) or str(severity), step))
    return findings
