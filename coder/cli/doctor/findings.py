"""Findings of `coder doctor`: what a check found, why it matters, and the next step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from coder.base.errors import CoderError, causes, explain_error
from coder.base.json_types import JsonObject
from coder.cli.core.missing_names import missing_resource
from coder.net.errors import HttpError
from coder.tailnet.verdicts import MARKS, State, TransportVerdict

REASONS = {
    "name": "Without an address of the host, nothing can connect.",
    "tcp": "Every command, agent and browser connects to this port.",
    "tls": "The session token is sent only to a server whose certificate is trusted.",
    "certificate": "Clients and agents stop connecting when the certificate expires.",
    "http": "Every command and every agent uses the API.",
    "clock": "Sign-in codes, tokens and certificates depend on equal clocks.",
    "version": "Client and server of different releases may not understand each other.",
    "links": "Terminals, logs and tunnels use WebSockets.",
    "relay": "Connections start on the relay and stay there without a direct path.",
    "relay-upgrade": "Connections start on the relay and stay there without a direct path.",
    "relay-websocket": "It replaces the upgrade behind proxies that do not pass it on.",
    "relay-stream": "It is the last way to the relay.",
    "udp": "Without UDP, connections to workspaces use the slower relay.",
    "direct": "A direct path is faster than the relay.",
    "network": "Connections to workspaces need the relay or a direct path.",
    "session": "Every command except `login` needs a session.",
    "disk": "Without free space, programs cannot write their files, and the database stops.",
    "agent-socket": "Commands inside the workspace use the agent's socket.",
    "agent-token": "The agent connects with this token.",
    "agent-service": "The service keeps the agent running across restarts of the machine.",
    "workspace": "Only a connected agent makes a workspace usable.",
    "health": "The server checks itself the way browsers and agents reach it.",
    "server-service": "The service runs the server.",
    "database": "The server keeps everything in its database.",
    "schema": "A server only starts on the schema of its release.",
    "provisioners": "Without a provisioner, no workspace can be built.",
    "terraform": "The built-in provisioners run Terraform.",
    "server-certificate": "The server ends TLS with this certificate.",
}
"""Why a check matters, by the finding's name."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check."""

    name: str
    "Identifier for programs; a key of `REASONS`."
    title: str
    state: State
    what: str
    next: str = ""
    "The one next step; empty for a check that found nothing."

    @property
    def why(self) -> str:
        return REASONS[self.name]

    def to_json(self) -> JsonObject:
        return {
            "name": self.name,
            "title": self.title,
            "state": self.state,
            "what": self.what,
            "why": self.why,
            "next": self.next,
        }


def ok(name: str, title: str, what: str) -> Finding:
    return Finding(name, title, "ok", what)


def warning(name: str, title: str, what: str, next_step: str) -> Finding:
    return Finding(name, title, "warning", what, next_step)


def failure(name: str, title: str, what: str, next_step: str) -> Finding:
    return Finding(name, title, "error", what, next_step)


def skipped(name: str, title: str, what: str, next_step: str = "") -> Finding:
    return Finding(name, title, "skipped", what, next_step)


def from_error(name: str, title: str, error: CoderError, next_step: str) -> Finding:
    """Return the finding for an error; its own hint wins over `next_step`."""
    answer = next((item for item in causes(error) if isinstance(item, HttpError)), None)
    missing = missing_resource(answer) if answer is not None else None
    what = missing.text if missing else str(answer) if answer is not None else explain_error(error, with_hint=False)
    return failure(name, title, what, error.hint or next_step)


def from_verdict(verdict: TransportVerdict) -> Finding:
    """Return the finding of a transport that `check_network` measured."""
    took = f" ({verdict.latency_ms:.1f} ms)" if verdict.latency_ms is not None else ""
    return Finding(verdict.name, verdict.title, verdict.state, f"{verdict.text}{took}", verdict.hint)


def finding_lines(finding: Finding, width: int) -> list[str]:
    """Return the lines of a finding: what, and for a problem also why and the next step."""
    lines = [f"{MARKS[finding.state]} {finding.title.ljust(width)}  {finding.what}"]
    indent = f"  {' ' * width}  "
    if finding.state in {"warning", "error"}:
        lines.append(f"{indent}{finding.why}")
    if finding.next and finding.state != "ok":
        lines.append(f"{indent}→ {finding.next}")
    return lines


def summary(findings: Iterable[Finding]) -> str:
    """Return the last line: numbers of failures, warnings and skipped checks."""
    counts = Counter(finding.state for finding in findings)
    return f"{counts['ok']} ok, {counts['warning']} warnings, {counts['error']} failures, {counts['skipped']} skipped"
