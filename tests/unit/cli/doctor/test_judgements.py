"""Every finding of `coder doctor` follows from its values, and names why it matters and the next step."""

from __future__ import annotations

import socket
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from coder.base.errors import CoderError
from coder.base.json_types import Json
from coder.cli.doctor import judgements
from coder.cli.doctor.deployment_checks import failed_way, judge_certificate
from coder.cli.doctor.doctor import CHECKS
from coder.cli.doctor.findings import REASONS, Finding, finding_lines, from_error, from_verdict, summary
from coder.cli.doctor.machine_checks import judge_disks
from coder.net.errors import HttpError, NetError
from coder.tailnet import verdicts

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
GIB = 1 << 30


def day(days: float) -> datetime:
    return NOW + timedelta(days=days)


def agent(status: str, *, is_external: bool = False) -> Finding:
    return judgements.judge_agent("ann/dev", "main", status, "it never connected", is_external=is_external)


FINDINGS: list[tuple[Finding, str, str, str]] = [
    (judgements.judge_clock(timedelta(seconds=2)), "ok", "agrees", ""),
    (judgements.judge_clock(timedelta(seconds=-40)), "warning", "40s behind", "Synchronize"),
    (judgements.judge_clock(timedelta(hours=1)), "error", "1h0m0s ahead of", "Synchronize"),
    (judgements.judge_clock(None), "skipped", "no date", ""),
    (judgements.judge_expiry("certificate", "C", "it", day(30), NOW), "ok", "2026-03-31", ""),
    (judgements.judge_expiry("certificate", "C", "it", day(3), NOW), "warning", "expires in 3 days", "Renew"),
    (judgements.judge_expiry("certificate", "C", "it", day(-1), NOW), "error", "expired on 2026-02-28", "Renew"),
    (judgements.judge_versions("v2.34.0", "v2.34.1"), "ok", "v2.34.1", ""),
    (judgements.judge_versions("v2.34.0", "v2.30.0"), "warning", "v2.30.0", "install.sh"),
    (judgements.judge_versions("v2.34.0", ""), "skipped", "names no version", ""),
    (judgements.judge_disk("/data", 9 * GIB, 10 * GIB), "ok", "/data: 9.0 of 10.0 GiB free", ""),
    (judgements.judge_disk("/data", GIB / 2, 10 * GIB), "warning", "0.5 of", "enlarge"),
    (judgements.judge_disk("/data", 0, 10 * GIB), "error", "0.0 of", "enlarge"),
    (judgements.judge_session("ann", None, NOW), "ok", "signed in as ann", ""),
    (judgements.judge_session("ann", day(9), NOW), "ok", "until 2026-03-10", ""),
    (judgements.judge_session("ann", day(0.02), NOW), "warning", "expires in 28m48s", "coder login"),
    (judgements.judge_service("agent-service", "S", "a.service", "active"), "ok", "a.service is active", ""),
    (
        judgements.judge_service("agent-service", "S", "a.service", "failed"),
        "error",
        "failed",
        "journalctl -u a.service",
    ),
    (judgements.judge_service("agent-service", "S", "a.service", ""), "skipped", "not known", ""),
    (judgements.judge_schema("0003", ["0001", "0002", "0003"]), "ok", "0003", ""),
    (judgements.judge_schema("0001", ["0001", "0002", "0003"]), "warning", "2 migrations", "backup"),
    (judgements.judge_schema("0009", ["0001"]), "error", "newer release", "program of that release"),
    (judgements.judge_schema("", ["0001"]), "error", "no tables", "Start the server"),
    (judgements.judge_provisioners(3, 0), "ok", "3 connected", ""),
    (judgements.judge_provisioners(0, 2), "error", "2 jobs wait", "coder provisioner start"),
    (agent("connected"), "ok", "connected", ""),
    (agent("connecting"), "warning", "connecting: it never connected", "coder logs ann/dev"),
    (agent("disconnected"), "error", "disconnected", "coder logs ann/dev"),
    (agent("timeout", is_external=True), "error", "timeout", "agent-instructions ann/dev"),
    (from_verdict(verdicts.links("stream")), "warning", "WebSockets", "Upgrade"),
    (from_verdict(verdicts.udp(works=False, servers=2, answered=0)), "warning", "no answer", "UDP"),
    (from_error("session", "S", HttpError(401, "The key expired."), "x"), "error", "The key expired.", "coder login"),
    (from_error("network", "N", CoderError("x", "it broke"), "Run it again."), "error", "it broke", "Run it again."),
]


@pytest.mark.parametrize(("finding", "state", "what", "next_step"), FINDINGS)
def test_finding_follows_from_values(finding: Finding, state: str, what: str, next_step: str) -> None:
    assert finding.state == state
    assert what in finding.what
    assert next_step in finding.next
    if state in {"warning", "error"}:
        assert finding.next, "a problem names the next step"
        assert finding.why in "\n".join(finding_lines(finding, 10))


@pytest.mark.parametrize(
    ("error", "states", "next_step"),
    [
        (NetError("unreachable", "cannot connect to x:1", "Is it running?"), ("ok", "error", "skipped"), "running"),
        (NetError("timeout", "x:1 did not answer"), ("ok", "error", "skipped"), "firewall"),
        (NetError("proxy", "the proxy refused"), ("ok", "error", "skipped"), "Check"),
        (NetError("tls", "not trusted", "Set --client-tls-ca-file"), ("ok", "ok", "error"), "ca-file"),
    ],
)
def test_ladder_stops_at_failed_rung(error: NetError, states: tuple[str, ...], next_step: str) -> None:
    findings = failed_way(error)
    assert tuple(finding.state for finding in findings) == states
    assert next_step in next(finding.next for finding in findings if finding.state == "error")


def test_unknown_host_fails_first_rung() -> None:
    error = NetError("unreachable", "cannot connect to nohost:443")
    error.__cause__ = socket.gaierror(-2, "Name or service not known")
    first, *others = failed_way(error)
    assert first.state == "error" and "DNS" in first.next and "errno" not in first.what.lower()
    assert {finding.state for finding in others} == {"skipped"}


def test_certificate_names_authority_and_expiry() -> None:
    issued = {"issuer": ((("organizationName", "Example Trust"),),), "notAfter": "Mar  4 12:00:00 2026 GMT"}
    assert ssl.cert_time_to_seconds(issued["notAfter"]) == day(3).timestamp()  # type: ignore[arg-type]
    tls, certificate = judge_certificate("x", issued, "/ca.pem", NOW)
    assert "Example Trust" in tls.what and "/ca.pem" in tls.what
    assert certificate.state == "warning"


def test_health_sections_become_findings() -> None:
    report: dict[str, Json] = {
        "access_url": {"severity": "ok", "warnings": []},
        "websocket": {"severity": "error", "error": "EWS02: refused", "warnings": []},
        "derp": {"severity": "warning", "warnings": [{"message": "slow"}]},
        "provisioner_daemons": {"severity": "error", "error": "EPD01", "dismissed": True},
    }
    found = {finding.title: finding for finding in judgements.judge_health(report)}
    assert {title: finding.state for title, finding in found.items()} == {
        "Access URL": "ok",
        "WebSockets": "error",
        "Relays": "warning",
        "Provisioners": "ok",
    }
    assert "EWS02" in found["WebSockets"].what and "slow" in found["Relays"].what


def test_file_systems_are_judged_once(tmp_path: Path) -> None:
    (one,) = judge_disks([("a", tmp_path), ("b", tmp_path / "missing" / "deeper")])
    assert str(tmp_path) in one.what


def test_every_name_has_reason() -> None:
    names = {finding.name for finding, *_ in FINDINGS} | {check.name for check in CHECKS}
    names |= {f"relay-{transport}" for transport in ("upgrade", "websocket", "stream")} | {"udp", "direct", "links"}
    assert names <= REASONS.keys()
    assert "1 ok, 1 warnings" in summary([FINDINGS[0][0], FINDINGS[1][0]])
