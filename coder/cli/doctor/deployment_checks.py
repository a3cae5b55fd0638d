"""Checks of the way to the deployment: name, TCP, TLS, HTTP, then every transport that `coder netcheck` measures."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import quote

import trio
from msgspec import ValidationError, to_builtins

from coder.api.access.keys import APIKey
from coder.api.base.answers import read_answer
from coder.api.people.users import User
from coder.api.site.build_info import BuildInfoResponse
from coder.api.site.health import HealthcheckReport
from coder.api.workspaces.workspaces import Workspace, WorkspacesResponse
from coder.base.errors import CoderError, causes
from coder.base.json_types import Json, as_list
from coder.base.version import BUILD_VERSION
from coder.cli.doctor.examination import Examination
from coder.cli.doctor.findings import Finding, failure, from_error, from_verdict, ok, skipped, warning
from coder.cli.doctor.judgements import (
    judge_agent,
    judge_clock,
    judge_expiry,
    judge_health,
    judge_session,
    judge_versions,
)
from coder.client.answers import read
from coder.client.target import split_target
from coder.net.dial import connect
from coder.net.errors import HttpError, NetError
from coder.net.http1 import HttpClient, HttpResponse
from coder.net.masking import masked
from coder.net.policy import DialPolicy, default_port, proxy_for
from coder.tailnet.network_check import check_network
from coder.tailnet.relay import proxy_without_credentials
from coder.tailnet.verdicts import through

_LADDER = (("name", "Name"), ("tcp", "TCP"), ("tls", "TLS"))
_SIGN_IN = "Sign in with `coder login <url>`."
_NO_ADDRESS = "Name the deployment: `coder login <url>`, --url or CODER_URL."


async def check_way(examination: Examination) -> list[Finding]:
    """Check name, TCP and TLS with one connection, and the certificate it meets."""
    policy = examination.policy
    if policy is None:
        return [skipped("name", "Name", "no deployment is known to this machine", _NO_ADDRESS)]
    host, secure = policy.origin.hostname or "", policy.origin.scheme == "https"
    where = f"{host}:{policy.origin.port or default_port(policy.origin.scheme)}"
    try:
        proxy = proxy_without_credentials(proxy_for(policy, host, policy.origin.scheme))
        stream = await connect(policy)
    except NetError as error:
        return failed_way(error)
    try:
        findings = [
            ok("name", "Name", f"{host} has an address" if not proxy else f"the proxy resolves {host}"),
            ok("tcp", "TCP", f"{where} accepts connections, {through(proxy)}"),
        ]
        if not secure:
            return [*findings, _unencrypted(host)]
        certificate: Mapping[str, Json] = getattr(stream, "getpeercert", dict)()
        authority = policy.ca_file or os.environ.get("SSL_CERT_FILE", "")
        return [*findings, *judge_certificate(host, certificate, authority, examination.now())]
    finally:
        await trio.aclose_forcefully(stream)


def failed_way(error: NetError) -> list[Finding]:
    """Return the rungs up to the one that failed, and skip those above it."""
    is_name = any(isinstance(cause, socket.gaierror) for cause in causes(error))
    failed = 0 if is_name else 2 if error.code in {"tls", "tls_files"} else 1
    findings = [ok(name, title, "works") for name, title in _LADDER[:failed]]
    if is_name:
        step = "Check the spelling of the address, and this machine's DNS and VPN."
        findings.append(failure("name", "Name", f"{error.message}: the host name has no address", step))
    else:
        findings.append(from_error(*_LADDER[failed], error, "Check the URL, the network and any firewall between."))
    return findings + [skipped(name, title, "not reached") for name, title in _LADDER[failed + 1 :]]


def _unencrypted(host: str) -> Finding:
    if host in {"localhost", "127.0.0.1", "::1"}:
        return skipped("tls", "TLS", "not used: the server is on this machine")
    what = "the address is http: passwords and tokens cross the network in clear text"
    return warning("tls", "TLS", what, "Set up TLS on the server or on a reverse proxy, and use the https address.")


def judge_certificate(host: str, certificate: Mapping[str, Json], ca_file: str, now: datetime) -> list[Finding]:
    """Judge a certificate in the form of `ssl.SSLSocket.getpeercert`; verification has succeeded.

    `ca_file`: file of the private authority, "" for the system's.
    """
    private = f", with the authorities of {ca_file}" if ca_file else ""
    what = f"the certificate of {host} is trusted{private}; issued by {_issuer(certificate)}"
    findings = [ok("tls", "TLS", what)]
    if "notAfter" in certificate:
        expires = datetime.fromtimestamp(ssl.cert_time_to_seconds(str(certificate["notAfter"])), UTC)
        findings.append(judge_expiry("certificate", "Certificate", f"the certificate of {host}", expires, now))
    return findings


def _issuer(certificate: Mapping[str, Json]) -> str:
    """Return the name of the issuer: its organization, or its common name."""
    pairs = [as_list(pair) for part in as_list(certificate.get("issuer")) for pair in as_list(part)]
    names = {str(pair[0]): str(pair[1]) for pair in pairs}
    return names.get("organizationName") or names.get("commonName") or "an unnamed authority"


async def check_api(examination: Examination) -> list[Finding]:
    """Check that the API answers, without a session; compare versions and clocks."""
    policy = examination.policy
    if policy is None:
        return []
    before = examination.now()
    try:
        async with HttpClient(policy.with_token(None)) as http:
            answer = await http.request("GET", "/api/v2/buildinfo")
            info = read(answer, BuildInfoResponse)
    except CoderError as error:
        return [from_error("http", "HTTP", error, "Check the URL, and the proxies between.")]
    except ValidationError:
        return [failure("http", "HTTP", f"{masked(policy.url)} is not a Coder server", "Check the URL.")]
    examination.is_reachable = True
    return [
        ok("http", "HTTP", f"the API at {masked(policy.url)} answers"),
        judge_clock(_skew(answer, before, examination.now())),
        judge_versions(BUILD_VERSION, info.version),
    ]


def _skew(answer: HttpResponse, before: datetime, after: datetime) -> timedelta | None:
    """Return the smallest difference, this machine's time minus the server's, that explains the date of the answer."""
    try:
        date = parsedate_to_datetime(answer.headers["date"])
    except (KeyError, ValueError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(before - date - timedelta(seconds=1), min(timedelta(), after - date))


async def check_session(examination: Examination) -> list[Finding]:
    """Check that the deployment accepts the session, and until when."""
    policy = examination.policy
    if policy is None or policy.token is None:
        return [skipped("session", "Session", "no session on this machine: some checks are skipped", _SIGN_IN)]
    if not examination.is_reachable:
        return [skipped("session", "Session", "not checked: the deployment does not answer")]
    async with HttpClient(policy) as http:
        try:
            user = read_answer((await http.request("GET", "/api/v2/users/me")).body, User)
        except HttpError as error:
            return [from_error("session", "Session", error, _SIGN_IN)]
        examination.is_signed_in = True
        expires = await _expiry(http, policy)
    return [judge_session(user.username, expires, examination.now())]


async def _expiry(http: HttpClient, policy: DialPolicy) -> datetime | None:
    """Return the expiry of the session; None if the token may not read it."""
    ident = policy.token.reveal().partition("-")[0] if policy.token else ""
    try:
        return read_answer((await http.request("GET", f"/api/v2/users/me/keys/{quote(ident)}")).body, APIKey).expires_at
    except HttpError:
        return None


async def check_transports(examination: Examination) -> list[Finding]:
    """Measure every transport, as `coder netcheck` does."""
    if not examination.is_signed_in or examination.policy is None:
        return [skipped("network", "Relay and UDP", "not measured: this needs a session and a server that answers")]
    try:
        report = await check_network(examination.policy, direct=not examination.invocation.globals.disable_direct)
    except CoderError as error:
        return [from_error("network", "Relay and UDP", error, "Run `coder netcheck`.")]
    return [from_verdict(verdict) for verdict in report.transports if verdict.name != "api"]


async def check_health(examination: Examination) -> list[Finding]:
    """Read the server's own health report; administrators only."""
    if not examination.is_signed_in or examination.policy is None:
        return []
    async with HttpClient(examination.policy) as http:
        try:
            report = read(await http.request("GET", "/api/v2/debug/health"), HealthcheckReport)
            return judge_health(to_builtins(report))
        except HttpError as error:
            if error.status in {403, 404}:
                return [skipped("health", "Health", "this session may not read the server's health report")]
            return [from_error("health", "Health", error, "Read the server's log.")]


async def check_workspaces(examination: Examination) -> list[Finding]:
    """Check the agents of the named workspace, or of the user's running ones."""
    if not examination.is_signed_in or examination.policy is None:
        return []
    async with HttpClient(examination.policy) as http:
        try:
            workspaces = await _workspaces(http, examination.workspace)
        except CoderError as error:
            return [from_error("workspace", "Workspace", error, "List yours with `coder list`.")]
    findings = [finding for workspace in workspaces for finding in _agents(workspace)]
    if examination.workspace and not findings:
        what = f"{examination.workspace} has no running agent"
        findings.append(failure("workspace", "Workspace", what, f"Start it: `coder start {examination.workspace}`."))
    return findings


async def _workspaces(http: HttpClient, name: str) -> list[Workspace]:
    if not name:
        return read(await http.request("GET", "/api/v2/workspaces?q=owner:me"), WorkspacesResponse).workspaces
    owner, workspace, _ = split_target(name)
    path = f"/api/v2/users/{quote(owner)}/workspace/{quote(workspace)}"
    return [read(await http.request("GET", path), Workspace)]


def _agents(workspace: Workspace) -> list[Finding]:
    build = workspace.latest_build
    if build.transition != "start" or build.job.status != "succeeded":
        return []
    return [
        judge_agent(
            f"{workspace.owner_name}/{workspace.name}",
            agent.name,
            agent.status,
            str(agent.health.reason or ""),
            is_external=bool(build.has_external_agent),
        )
        for resource in build.resources
        for agent in resource.agents or ()
    ]
