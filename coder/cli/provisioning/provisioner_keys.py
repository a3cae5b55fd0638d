"""`coder provisioner keys`: secrets that authenticate daemons without a user's token, with fixed tags."""

from __future__ import annotations

import sys
from urllib.parse import quote

from coder.api.provisioning.provisioner_keys import CreateProvisionerKeyResponse, ProvisionerKey
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.options import OrgOption
from coder.cli.core.organization_choice import organization_of
from coder.cli.declarations.provisioning.provisioner_keys import (
    CREATE,
    DELETE,
    LIST,
    ProvisionerKeysCreateOptions,
    ProvisionerKeysDeleteOptions,
    ProvisionerKeysListOptions,
)
from coder.cli.ui.output import api_time, confirm, print_rows, say
from coder.cli.workspaces.parameters import pairs
from coder.client.answers import read, read_rows
from coder.net.blocking import BlockingClient


def _path(invocation: Invocation[OrgOption], client: BlockingClient) -> str:
    organization = organization_of(invocation, client)
    return f"/api/v2/organizations/{organization.id}/provisionerkeys"


@implements(CREATE)
def _create(invocation: Invocation[ProvisionerKeysCreateOptions]) -> int:
    client = session.client(invocation)
    tags = pairs(invocation.options.tag, "tag")
    name = invocation.args[0]
    body = {"name": name, "tags": tags}
    answer = client.request("POST", _path(invocation, client), json=body, expect=(201,))
    sys.stdout.write(
        f"Successfully created provisioner key {name.lower()}! Keep this secret, it is not shown again.\n\n"
        f"{read(answer, CreateProvisionerKeyResponse).key}\n"
    )
    return 0


@implements(LIST)
def _list(invocation: Invocation[ProvisionerKeysListOptions]) -> int:
    client = session.client(invocation)
    keys = read_rows(client.request("GET", _path(invocation, client)), ProvisionerKey)
    if not keys and invocation.options.output != "json":
        say("No provisioner keys found")
        return 0
    print_rows(
        invocation,
        lambda: [{"created at": api_time(key.created_at), "name": key.name, "tags": key.tags} for key, _ in keys],
        lambda: [raw for _, raw in keys],
    )
    return 0


@implements(DELETE)
def _delete(invocation: Invocation[ProvisionerKeysDeleteOptions]) -> int:
    client = session.client(invocation)
    name = invocation.args[0]
    confirm(invocation.options.yes, f"Delete provisioner key {name}? Its provisioners disconnect immediately.")
    client.request("DELETE", f"{_path(invocation, client)}/{quote(name, safe='')}", expect=(204,))
    sys.stdout.write(f"Successfully deleted provisioner key {name.lower()}!\n")
    return 0
