"""`coder provisioner keys`: secrets that authenticate daemons without a user's token, with fixed tags."""

from __future__ import annotations

import sys
from urllib.parse import quote

from coder.api.provisioning.provisioner_keys import CreateProvisionerKeyResponse, ProvisionerKey
from coder.base.config import Option
from coder.cli.core import session
from coder.cli.core.command import ORG, YES, Command, Invocation, column_option, output_option
from coder.cli.templates.templates import organization_of
from coder.cli.ui.output import api_time, confirm, print_rows, say
from coder.cli.workspaces.parameters import pairs
from coder.client.answers import read, read_rows
from coder.net.blocking import BlockingClient

COLUMNS = ("created at", "name", "tags")


def _path(invocation: Invocation, client: BlockingClient) -> str:
    organization = organization_of(invocation, client)
    return f"/api/v2/organizations/{organization.id}/provisionerkeys"


def _create(invocation: Invocation) -> int:
    client = session.client(invocation)
    tags = pairs(invocation["tag"], "tag")
    name = invocation.args[0]
    body = {"name": name, "tags": tags}
    answer = client.request("POST", _path(invocation, client), json=body, expect=(201,))
    sys.stdout.write(
        f"Successfully created provisioner key {name.lower()}! Keep this secret, it is not shown again.\n\n"
        f"{read(answer, CreateProvisionerKeyResponse).key}\n"
    )
    return 0


def _list(invocation: Invocation) -> int:
    client = session.client(invocation)
    keys = read_rows(client.request("GET", _path(invocation, client)), ProvisionerKey)
    if not keys and invocation["output"] != "json":
        say("No provisioner keys found")
        return 0
    print_rows(
        invocation,
        lambda: [{"created at": api_time(key.created_at), "name": key.name, "tags": key.tags} for key, _ in keys],
        lambda: [raw for _, raw in keys],
    )
    return 0


def _delete(invocation: Invocation) -> int:
    client = session.client(invocation)
    name = invocation.args[0]
    confirm(invocation, f"Delete provisioner key {name}? Its provisioners disconnect immediately.")
    client.request("DELETE", f"{_path(invocation, client)}/{quote(name, safe='')}", expect=(204,))
    sys.stdout.write(f"Successfully deleted provisioner key {name.lower()}!\n")
    return 0


CREATE = Command(
    words="provisioner keys create",
    summary="Create a new provisioner key",
    usage="<name>",
    run=_create,
    min_args=1,
    max_args=1,
    options=(
        Option(
            "tag",
            "tag",
            "CODER_PROVISIONERD_TAGS",
            short="t",
            kind="string-array",
            default=(),
            help="Tag, key=value, of every provisioner with this key; may be repeated.",
        ),
        ORG,
    ),
)
LIST = Command(
    words="provisioner keys list",
    summary="List provisioner keys in an organization",
    run=_list,
    max_args=0,
    options=(column_option(COLUMNS, COLUMNS), output_option(), ORG),
)
DELETE = Command(
    words="provisioner keys delete",
    summary="Delete a provisioner key",
    usage="<name>",
    run=_delete,
    min_args=1,
    max_args=1,
    options=(YES, ORG),
)
