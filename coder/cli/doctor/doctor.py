"""`coder doctor`: one command for "something is wrong here".

The checks run one after the other, each within a time limit. They are the probes of `coder netcheck`, of the health
page, of `coder stat` and of the agent; this package only judges their results.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import trio

from coder.base.errors import CoderError
from coder.base.secret import Secret
from coder.base.threads import run_trio
from coder.base.version import BUILD_VERSION
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.failures import describe_exception
from coder.cli.declarations.doctor.doctor import DOCTOR, DoctorOptions
from coder.cli.doctor import deployment_checks, machine_checks
from coder.cli.doctor.examination import Check, Examination
from coder.cli.doctor.findings import Finding, failure, finding_lines, from_error, skipped, summary
from coder.net.policy import DialPolicy

_WIDTH = 22
"""Characters of the longest title, `Relay by plain requests`, about."""


async def _check_server(examination: Examination) -> list[Finding]:
    """Check the server on this machine; the slim edition and Windows have none."""
    try:
        from coder.cli.doctor.server_checks import check_server
    except ModuleNotFoundError:
        return [skipped("database", "Server", "this program has no server")]
    return await check_server(examination)


CHECKS = (
    Check("name", "the way to the deployment", 15.0, deployment_checks.check_way),
    Check("http", "the API", 20.0, deployment_checks.check_api),
    Check("session", "the session", 20.0, deployment_checks.check_session),
    Check("network", "relays and UDP", 60.0, deployment_checks.check_transports),
    Check("workspace", "the workspaces' agents", 20.0, deployment_checks.check_workspaces),
    Check("health", "the server's health report", 60.0, deployment_checks.check_health),
    Check("agent-service", "this machine's agent", 25.0, machine_checks.check_agent),
    Check("database", "this machine's server", 45.0, _check_server),
    Check("disk", "the disks", 5.0, machine_checks.check_disks),
)
"""The steps in their order, each with its limit in seconds."""


@implements(DOCTOR)
def _run(invocation: Invocation[DoctorOptions]) -> int:
    return run_trio(_main, invocation)


async def _main(invocation: Invocation[DoctorOptions]) -> int:
    as_json = invocation.options.output == "json"
    findings: list[Finding] = []
    try:
        examination = Examination(invocation, _policy(invocation))
    except CoderError as error:
        examination = Examination(invocation)
        findings.append(from_error("name", "Name", error, "Check the address."))
    for check in CHECKS:
        sys.stderr.write(f"Checking {check.title} …\n")
        sys.stderr.flush()
        found = await run_check(check, examination)
        findings += found
        if not as_json:
            sys.stdout.write("".join(f"{line}\n" for item in found for line in finding_lines(item, _WIDTH)))
            sys.stdout.flush()
    is_healthy = not any(finding.state == "error" for finding in findings)
    if as_json:
        report = {"healthy": is_healthy, "version": BUILD_VERSION, "findings": [item.to_json() for item in findings]}
        sys.stdout.write(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(f"\n{summary(findings)}\n")
    return 0 if is_healthy else 1


async def run_check(check: Check, examination: Examination) -> list[Finding]:
    """Run a check within its limit. A check that fails or takes too long becomes a finding; the others still run."""
    with trio.move_on_after(check.limit):
        try:
            return await check.run(examination)
        except CoderError as error:
            return [from_error(check.name, check.title, error, "Run the command again with --verbose.")]
        except Exception as error:
            what = f"the check failed: {describe_exception(error)}"
            return [failure(check.name, check.title, what, "Run the command again with --verbose.")]
    what = f"no result within {check.limit:g} s"
    return [failure(check.name, check.title, what, "Check the network, then run the command again.")]


def _policy(invocation: Invocation[DoctorOptions]) -> DialPolicy | None:
    """Return the way to the deployment: of the login, of this machine's agent or of its server."""
    directory = session.config_dir(invocation)
    token = invocation.globals.token or session.saved_token(directory)
    address = invocation.globals.url or session.read_file(directory, "url") or invocation.options.agent_url
    if not address:
        address = _server_address(invocation)
    if not address:
        return None
    policy = session.dial_policy(invocation, url=address, token="")
    return replace(policy, token=Secret(token) if token else None)


def _server_address(invocation: Invocation[DoctorOptions]) -> str:
    try:
        from coder.cli.doctor.server_checks import server_address
    except ModuleNotFoundError:
        return ""
    return server_address(invocation)
