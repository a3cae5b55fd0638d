"""`coder provisioner list`: daemons and their state."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from coder.base.config import Option
from coder.base.duration import format_duration
from coder.cli.core import session
from coder.cli.core.command import ORG, Command, Invocation, column_option, output_option
from coder.cli.templates.templates import organization_of
from coder.cli.ui.output import Row, api_time, fields_of, print_json, print_rows, print_table, say
from coder.client.answers import read_rows

if TYPE_CHECKING:
    from coder.api.provisioning.provisioners import ProvisionerDaemon, ProvisionerDaemonHealth

COLUMNS = (
    "id",
    "organization id",
    "created at",
    "last seen at",
    "name",
    "version",
    "api version",
    "tags",
    "key name",
    "status",
    "current job id",
    "current job status",
    "current job template name",
    "current job template icon",
    "current job template display name",
    "previous job id",
    "previous job status",
    "previous job template name",
    "previous job template icon",
    "previous job template display name",
    "organization",
)
DEFAULT_COLUMNS = ("created at", "last seen at", "key name", "name", "version", "status", "tags")
HEALTH_COLUMNS = ("name", "version", "status", "source", "reachable", "latency", "slots", "cpu", "memory", "disk")


def _list(invocation: Invocation) -> int:
    from coder.api.provisioning.provisioners import ProvisionerDaemon

    if invocation["health"]:
        return _list_health(invocation)
    client = session.client(invocation)
    organization = organization_of(invocation, client)
    query = {"limit": str(invocation["limit"])}
    if invocation["show_offline"]:
        query["offline"] = "true"
    if invocation["status"]:
        query["status"] = ",".join(invocation["status"])
    if invocation["max_age"]:
        query["max_age"] = format_duration(invocation["max_age"])
    path = f"/api/v2/organizations/{organization.id}/provisionerdaemons?{urlencode(query)}"
    daemons = read_rows(client.request("GET", path), ProvisionerDaemon)
    title = organization.display_name or organization.name
    if not daemons and invocation["output"] != "json":
        say("No provisioner daemons found")
        return 0
    print_rows(
        invocation,
        lambda: [_row(daemon, title) for daemon, _ in daemons],
        lambda: [raw | {"organization_name": title} for _, raw in daemons],
    )
    return 0


def _list_health(invocation: Invocation) -> int:
    """Print the health that the server measured over the mesh (`--health`)."""
    from coder.api.provisioning.provisioners import ProvisionerDaemonHealth

    client = session.client(invocation)
    organization = organization_of(invocation, client)
    path = f"/api/v2/organizations/{organization.id}/provisionerdaemons/health"
    daemons = read_rows(client.request("GET", path), ProvisionerDaemonHealth)
    if not invocation["show_offline"]:
        daemons = [daemon for daemon in daemons if daemon[0].status != "offline"]
    if invocation["output"] == "json":
        print_json([raw for _, raw in daemons])
    else:
        print_table(HEALTH_COLUMNS, [_health_row(health) for health, _ in daemons])
    return 0


def _health_row(health: ProvisionerDaemonHealth) -> Row:
    host = health.host
    row: dict[str, object] = {"name": health.name, "version": health.version, "status": health.status}
    row["source"] = health.source
    reachable = "yes" if health.reachable else "no"
    row["reachable"] = f"no, since {api_time(health.unreachable_since)}" if health.unreachable_since else reachable
    row["latency"] = "" if health.latency_ms is None else f"{health.latency_ms:.0f} ms"
    row["slots"] = f"{health.slots.busy}/{health.slots.total}"
    row["cpu"] = "" if host is None or host.cpu is None else f"{host.cpu:.1f}/{host.cores} cores"
    row["memory"] = _share(host.memory_used, host.memory_total) if host else ""
    row["disk"] = _share(host.disk_used, host.disk_total) if host else ""
    return row


def _share(used: int | None, total: int | None) -> str:
    return "" if used is None or total is None else f"{used / 2**30:.1f}/{total / 2**30:.1f} GiB"


def _row(daemon: ProvisionerDaemon, organization: str) -> Row:
    own = fields_of(daemon)
    row = {column: _cell_value(own.get(column.replace(" ", "_"))) for column in COLUMNS if "job" not in column}
    row["organization"] = organization
    for which, referenced_job in (("current", daemon.current_job), ("previous", daemon.previous_job)):
        job = fields_of(referenced_job) if referenced_job else {}
        for key in ("id", "status", "template name", "template icon", "template display name"):
            row[f"{which} job {key}"] = _cell_value(job.get(key.replace(" ", "_")))
    return row


def _cell_value(value: object) -> object:
    return "<nil>" if value is None else value


LIST = Command(
    words="provisioner list",
    summary="List provisioners in an organization",
    run=_list,
    max_args=0,
    options=(
        Option(
            "limit",
            "limit",
            "CODER_PROVISIONER_LIST_LIMIT",
            short="l",
            kind="int",
            default=50,
            help="Maximum number of rows to list; further rows are omitted.",
        ),
        Option(
            "health",
            "health",
            "CODER_PROVISIONER_LIST_HEALTH",
            kind="bool",
            default=False,
            help="Show the liveness and load of the machines instead.",
        ),
        Option(
            "show_offline",
            "show-offline",
            "CODER_PROVISIONER_SHOW_OFFLINE",
            short="f",
            kind="bool",
            default=False,
            help="Also list provisioners that are offline.",
        ),
        Option(
            "status",
            "status",
            "CODER_PROVISIONER_LIST_STATUS",
            short="s",
            kind="string-array",
            default=(),
            choices=("offline", "idle", "busy"),
            help="List only provisioners in one of these states, separated by commas.",
        ),
        Option(
            "max_age",
            "max-age",
            "CODER_PROVISIONER_LIST_MAX_AGE",
            short="m",
            kind="duration",
            default=timedelta(),
            help="List only provisioners seen within this time, like 1h; 0 for all.",
        ),
        column_option(COLUMNS, DEFAULT_COLUMNS),
        output_option(),
        ORG,
    ),
)
