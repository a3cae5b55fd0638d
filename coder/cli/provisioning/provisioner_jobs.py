"""`coder provisioner jobs`: list, explain and cancel jobs."""

from __future__ import annotations

import sys
from urllib.parse import quote, urlencode

from coder.api.people.organizations import Organization
from coder.api.provisioning.job_reasons import ProvisionerJobWhy
from coder.api.provisioning.jobs import ProvisionerJob
from coder.base.errors import CoderError
from coder.base.json_types import as_object
from coder.base.quoted import quoted
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.options import OrgOption
from coder.cli.core.organization_choice import organization_of
from coder.cli.declarations.provisioning.provisioner_jobs import (
    CANCEL,
    COLUMNS,
    LIST,
    WHY,
    ProvisionerJobsListOptions,
    ProvisionerJobsWhyOptions,
)
from coder.cli.ui.output import Row, fields_of, parse_time, print_json, print_rows, print_table
from coder.client.answers import read, read_rows
from coder.net.blocking import BlockingClient

_NULLABLE = frozenset(
    {
        "started at",
        "completed at",
        "canceled at",
        "worker id",
        "template version id",
        "workspace build id",
        "template id",
        "workspace id",
    }
)


def _jobs_path(organization: Organization) -> str:
    return f"/api/v2/organizations/{organization.id}/provisionerjobs"


@implements(LIST)
def _list(invocation: Invocation[ProvisionerJobsListOptions]) -> int:
    client = session.client(invocation)
    organization = organization_of(invocation, client)
    query = {"limit": str(invocation.options.limit)}
    if invocation.options.status:
        query["status"] = ",".join(invocation.options.status)
    if invocation.options.initiator:
        query["initiator"] = invocation.options.initiator
    all_jobs = read_rows(client.request("GET", f"{_jobs_path(organization)}?{urlencode(query)}"), ProvisionerJob)
    jobs = all_jobs[::-1]  # the API lists the newest first; on a terminal the newest is easier to find last
    title = organization.display_name or organization.name
    if not jobs and invocation.options.output != "json":
        sys.stderr.write("No provisioner jobs found\n")
        return 0
    print_rows(
        invocation,
        lambda: [_row(job, title) for job, _ in jobs],
        lambda: [{**as_object(raw), "organization_name": title} for _, raw in jobs],
    )
    return 0


def _row(job: ProvisionerJob, organization: str) -> Row:
    flat = {**fields_of(job), **fields_of(job.input), **fields_of(job.metadata)}
    row: dict[str, object] = {}
    for column in COLUMNS:
        value = flat.get(column.replace(" ", "_"))
        row[column] = "<nil>" if value is None and column in _NULLABLE else value
    row["available workers"] = "[" + " ".join(job.available_workers or []) + "]"
    row["organization"] = organization
    waits = job.status == "pending"
    row["queue"] = f"{job.queue_position}/{job.queue_size}" if waits else ""
    return row


def _find(client: BlockingClient, organization: Organization, ident: str) -> ProvisionerJob:
    return read(client.request("GET", f"{_jobs_path(organization)}/{quote(ident, safe='')}"), ProvisionerJob)


@implements(CANCEL)
def _cancel(invocation: Invocation[OrgOption]) -> int:
    client = session.client(invocation)
    job = _find(client, organization_of(invocation, client), invocation.args[0])
    version = job.input.template_version_id or ""
    paths = {
        "workspace_build": f"/api/v2/workspacebuilds/{job.input.workspace_build_id or ''}/cancel",
        "template_version_import": f"/api/v2/templateversions/{version}/cancel",
        "template_version_dry_run": f"/api/v2/templateversions/{version}/dry-run/{job.id}/cancel",
    }
    if job.type not in paths:
        raise CoderError(
            "job",
            f"this program cannot cancel a job of type {quoted(job.type)}",
            "Use the program of the server's release.",
        )
    client.request("PATCH", paths[job.type])
    sys.stdout.write("Job canceled\n")
    return 0


@implements(WHY)
def _why(invocation: Invocation[ProvisionerJobsWhyOptions]) -> int:
    client = session.client(invocation)
    path = f"{_jobs_path(organization_of(invocation, client))}/{quote(invocation.args[0], safe='')}/why"
    answer = client.request("GET", path)
    if invocation.options.output == "json":
        print_json(answer.json())
    else:
        print_why(read(answer, ProvisionerJobWhy))
    return 0


def print_why(explanation: ProvisionerJobWhy) -> None:
    """Print the explanation: the verdict, the expected start, each daemon's reason, and the fix."""
    sys.stdout.write(f"{explanation.summary}\n")
    if explanation.verdict == "not_waiting":
        return
    tags = " ".join(f"{key}={value}" for key, value in sorted(explanation.tags.items()) if value)
    sys.stdout.write(f"It is a {explanation.provisioner} job and requires: {tags}\n")
    sys.stdout.write(f"Expected start: {_expected(explanation)}\n")
    if explanation.parked:
        sys.stdout.write("It waits without a time limit.\n")
    if explanation.daemons:
        sys.stdout.write("\n")
        rows = [{"provisioner": daemon.daemon_name, "reason": daemon.message} for daemon in explanation.daemons]
        print_table(("provisioner", "reason"), rows)
    remedy = explanation.remedy
    if remedy:
        sys.stdout.write("\nWhat helps:\n")
        sys.stdout.write(f"  {remedy.command}\n")
        if remedy.nearest:
            sys.stdout.write(f"  or change the closest match: {remedy.nearest}\n")
        for note in remedy.notes:
            sys.stdout.write(f"  {note}\n")


def _expected(explanation: ProvisionerJobWhy) -> str:
    start = explanation.expected_start
    if start is None:
        return f"unknown, {explanation.no_expected_start}"
    if explanation.verdict == "starts_now":
        return "now"
    first, last = parse_time(start.earliest), parse_time(start.latest)
    if first is None or last is None:
        return "unknown"
    times = [f"{at:%Y-%m-%d %H:%M:%S} UTC" for at in (first, last)]
    between = times[0] if times[0] == times[1] else f"between {times[0]} and {times[1]}"
    return f"{between} (from {start.samples} finished jobs)"
