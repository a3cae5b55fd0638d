"""Checks of the server on its own machine: service, disk, certificate, database, schema, provisioners, Terraform."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import trio
from cryptography import x509

from coder.base.errors import CoderError
from coder.cli.core.command import Invocation
from coder.cli.declarations.doctor.doctor import DoctorOptions
from coder.cli.doctor.examination import Examination
from coder.cli.doctor.findings import Finding, failure, from_error, ok, skipped
from coder.cli.doctor.judgements import judge_expiry, judge_provisioners, judge_schema, judge_service
from coder.cli.doctor.machine_checks import judge_disks, service_state
from coder.cli.server.direct_database import Target, choose_target
from coder.cli.server.installed_service import find_service
from coder.cli.server.start_checks import check_terraform
from coder.coderd.config.settings import ServerConfig
from coder.coderd.store.engine.database import Database, open_database
from coder.coderd.store.engine.migrate import known_revisions, reached_revision
from coder.coderd.store.engine.postgres import builtin_url, require_existing
from coder.coderd.store.site.database_facts import count_provisioners, read_facts
from coder.provisionerd.config import RELEASES_VARIABLE

_MIB = 1 << 20
_START = "Start the server: `coder server`, or `systemctl start coder`."


def server_address(invocation: Invocation[DoctorOptions]) -> str:
    """Return the access URL of this machine's server; "" without one."""
    try:
        return choose_target(invocation).config.access_url or ""
    except CoderError:
        return ""


async def check_server(examination: Examination) -> list[Finding]:
    """Check the server whose data or service this machine has."""
    service = await trio.to_thread.run_sync(find_service)
    try:
        target = choose_target(examination.invocation)
        has_data = bool(target.postgres_url) or _has_data(target.config.data_path)
    except CoderError as error:
        return [from_error("database", "Server", error, "Run this as root or as the server's user.")]
    if service is None and not has_data:
        return [skipped("database", "Server", "this machine runs no server that this user knows of")]
    findings = []
    if service is not None:
        unit = "coder.service"
        findings.append(judge_service("server-service", "Server service", unit, await service_state(unit)))
    if not has_data:
        what = "the server's database is not readable for this user"
        return [*findings, skipped("database", "Database", what, "Run this as root or as the server's user.")]
    findings += judge_disks([("data of the server", Path(target.config.data_path))])
    findings += server_certificates(target.config, examination.now())
    findings += await _database_findings(target, examination)
    return [*findings, *_terraform(examination, target.config)]


def _has_data(path: Path) -> bool:
    """Return whether a directory has a built-in database. Raise CoderError `no_access` if this user may not know."""
    try:
        require_existing(path)
    except CoderError as error:
        if error.code != "no_database":
            raise
        return False
    return True


async def _database_findings(target: Target, examination: Examination) -> list[Finding]:
    url = target.postgres_url or builtin_url(target.config.data_path)
    try:
        async with open_database(url, pool_size=1) as database:
            return await describe_database(database, examination.now())
    except CoderError as error:
        step = "Check the URL and the PostgreSQL server." if target.postgres_url else _START
        what = f"{error.message}" if target.postgres_url else "the built-in database is not running"
        return [failure("database", "Database", what, step)]


async def describe_database(database: Database, now: datetime) -> list[Finding]:
    """Judge a database by its answers. Raise CoderError `database_unreachable`."""
    known = known_revisions()
    revision = await reached_revision(database)
    facts = await database.read(read_facts)
    findings = [
        ok("database", "Database", f"PostgreSQL {facts.version}, {facts.size / _MIB:.0f} MiB"),
        judge_schema(revision, known),
    ]
    if revision in known:
        findings.append(judge_provisioners(*await database.read(count_provisioners, now)))
    return findings


def server_certificates(config: ServerConfig, now: datetime) -> list[Finding]:
    """Judge the certificates that the server ends TLS with."""
    findings = []
    for path in config.tls_cert_file if config.tls_enable else ():
        try:
            certificate = x509.load_pem_x509_certificates(Path(path).read_bytes())[0]
        except (OSError, ValueError):
            what = f"the certificate {path} cannot be read"
            findings.append(failure("server-certificate", "Certificate", what, "Check --tls-cert-file and its mode."))
            continue
        expires = certificate.not_valid_after_utc.astimezone(UTC)
        findings.append(judge_expiry("server-certificate", "Certificate", f"the certificate {path}", expires, now))
    return findings


def _terraform(examination: Examination, config: ServerConfig) -> list[Finding]:
    """Check that built-in provisioners have a Terraform, or can download one."""
    if config.provisioner_daemons < 1:
        return []
    downloads = examination.invocation.env.get(RELEASES_VARIABLE, "") != "off"
    try:
        check_terraform(config.terraform_path, examination.invocation.env, can_download=downloads)
    except CoderError as error:
        return [from_error("terraform", "Terraform", error, "Install Terraform.")]
    return [ok("terraform", "Terraform", f"{config.terraform_path} is installed or will be downloaded")]
