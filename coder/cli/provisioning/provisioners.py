"""`coder provisioner list`: daemons and their state."""

from __future__ import annotations

from urllib.parse import urlencode

from coder.api.provisioning.provisioners import ProvisionerDaemon, ProvisionerDaemonHealth
from coder.base.duration import format_duration
from coder.base.json_types import as_object
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.organization_choice import organization_of
from coder.cli.declarations.provisioning.provisioners import COLUMNS, LIST, ProvisionerListOptions
from coder.cli.ui.output import Row, api_time, fields_of, print_json, print_rows, print_table, say
from coder.client.answers import read_rows

HEALTH_COLUMNS = ("name", "version", "status", "source", "reachable", "latency", "slots", "cpu", "memory", "disk")


@implements(LIST)
def _list(invocation: Invocation[ProvisionerListOptions]) -> int:
    if invocation.options.health:
        return _list_health(invocation)
    client = session.client(invocation)
    organization = organization_of(invocation, client)
    query = {"limit": str(invocation.options.limit)}
    if invocation.options.show_offline:
        query["offline"] = "true"
    if invocation.options.status:
        query["status"] = ",".join(invocation.options.status)
    if invocation.options.max_age:
        query["max_age"] = format_duration(invocation.options.max_age)
    path = f"/api/v2/organizations/{organization.id}/provisionerdaemons?{urlencode(query)}"
    daemons = read_rows(client.request("GET", path), ProvisionerDaemon)
    title = organization.display_name or organization.name
    if not daemons and invocation.options.output != "json":
        say("No provisioner daemons found")
        return 0
    print_rows(
        invocation,
        lambda: [_row(daemon, title) for daemon, _ in daemons],
        lambda: [{**as_object(raw), "organization_name": title} for _, raw in daemons],
    )
    return 0


def _list_health(invocation: Invocation[ProvisionerListOptions]) -> int:
    """Print the health that the server measured over the mesh (`--health`)."""
    client = session.client(invocation)
    organization = organization_of(invocation, client)
    path = f"/api/v2/organizations/{organization.id}/provisionerdaemons/health"
    daemons = read_rows(client.request("GET", path), ProvisionerDaemonHealth)
    if not invocation.options.show_offline:
        daemons = [daemon for daemon in daemons if daemon[0].status != "offline"]
    if invocation.options.output == "json":
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
