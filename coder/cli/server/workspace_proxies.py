"""`coder workspace-proxy`: proxies that serve workspaces close to their users."""

from __future__ import annotations

import sys
from urllib.parse import quote

from coder.api.proxies.proxies import UpdateWorkspaceProxyResponse, WorkspaceProxiesResponse, WorkspaceProxy
from coder.base.errors import CoderError
from coder.base.json_types import as_object
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.failures import add_action_to_errors
from coder.cli.core.options import YesOption
from coder.cli.declarations.server.workspace_proxies import (
    COLUMNS,
    CREATE,
    DELETE,
    EDIT,
    LIST,
    REGENERATE,
    TokenTableOptions,
    WorkspaceProxyCreateOptions,
    WorkspaceProxyEditOptions,
    WorkspaceProxyLsOptions,
    WorkspaceProxyRegenerateTokenOptions,
)
from coder.cli.ui.output import ask, chosen_columns, confirm, fields_of, go_time, print_json, print_table, say
from coder.client.answers import read
from coder.net.blocking import BlockingClient, HttpAnswer

_ROOT = "/api/v2/workspaceproxies"


def _row(proxy: WorkspaceProxy, token: str = "") -> dict[str, object]:
    status = proxy.status or None
    report = (status.report or None) if status else None
    own = fields_of(proxy)
    row = {column: own.get(column.replace(" ", "_")) for column in COLUMNS}
    return row | {
        "icon url": proxy.icon_url,
        "url": proxy.path_app_url,
        "proxy status": status.status if status else "",
        "proxy report": "; ".join([*report.errors, *report.warnings]) if report else "",
        "proxy checked at": go_time(status.checked_at) if status else "",
        "created at": go_time(proxy.created_at),
        "updated at": go_time(proxy.updated_at),
        "proxy token": token,
    }


@implements(CREATE)
def _create(invocation: Invocation[WorkspaceProxyCreateOptions]) -> int:
    name = invocation.options.name
    if not name and invocation.options.no_prompt:
        raise CoderError("name", "a proxy requires a name", "Give --name.")
    body = {
        "name": name or ask("Name of the proxy:"),
        "display_name": invocation.options.display_name,
        "icon": invocation.options.icon,
    }
    client = session.client(invocation)
    with add_action_to_errors("create workspace proxy"):
        created = client.request("POST", _ROOT, json=body)
    return _print_created(invocation, created, "created")


@implements(REGENERATE)
def _regenerate(invocation: Invocation[WorkspaceProxyRegenerateTokenOptions]) -> int:
    client = session.client(invocation)
    proxy = _fetch(client, invocation.args[0])
    body = {"id": proxy.id, "name": proxy.name, "display_name": proxy.display_name}
    body |= {"icon": proxy.icon_url, "regenerate_token": True}
    with add_action_to_errors("regenerate the proxy's token"):
        updated = client.request("PATCH", f"{_ROOT}/{proxy.id}", json=body)
    return _print_created(invocation, updated, "updated with a new token")


def _print_created(invocation: Invocation[TokenTableOptions], answer: HttpAnswer, verb: str) -> int:
    updated = read(answer, UpdateWorkspaceProxyResponse)
    proxy, token = updated.proxy, updated.proxy_token
    if invocation.options.only_token:
        sys.stdout.write(f"{token}\n")
    elif invocation.options.output == "json":
        print_json(answer.json())
    elif invocation.options.output == "table":
        print_table(chosen_columns(invocation), [_row(proxy, token)])
    else:
        sys.stdout.write(f'Workspace proxy "{proxy.name}" has been {verb}. It authenticates with this token:\n\n')
        sys.stdout.write(f"  {token}\n\n")
        sys.stdout.write("Store it safely: it is not shown again. A proxy with the old token stops working.\n")
    return 0


def _fetch(client: BlockingClient, reference: str) -> WorkspaceProxy:
    with add_action_to_errors(f'fetch workspace proxy "{reference}"'):
        return read(client.request("GET", f"{_ROOT}/{quote(reference, safe='')}"), WorkspaceProxy)


@implements(EDIT)
def _edit(invocation: Invocation[WorkspaceProxyEditOptions]) -> int:
    changes = invocation.given_values({name: name for name in ("name", "display_name", "icon")})
    if not changes:
        raise CoderError("nothing", "no changes were requested", "Set --name, --display-name or --icon.")
    client = session.client(invocation)
    proxy = _fetch(client, invocation.args[0])
    body = {"id": proxy.id, "name": proxy.name, "display_name": proxy.display_name, "icon": proxy.icon_url}
    with add_action_to_errors("edit workspace proxy"):
        answer = client.request("PATCH", f"{_ROOT}/{proxy.id}", json={**body, **changes})
    updated = read(answer, UpdateWorkspaceProxyResponse)
    if invocation.options.output == "json":
        print_json(as_object(answer.json())["proxy"])
    elif invocation.options.output == "table":
        print_table(chosen_columns(invocation), [_row(updated.proxy)])
    else:
        sys.stdout.write(f'Workspace proxy "{updated.proxy.name}" has been changed.\n')
    return 0


@implements(DELETE)
def _delete(invocation: Invocation[YesOption]) -> int:
    client = session.client(invocation)
    proxy = _fetch(client, invocation.args[0])
    confirm(invocation.options.yes, f"Delete workspace proxy {proxy.name}?")
    with add_action_to_errors("delete workspace proxy"):
        client.request("DELETE", f"{_ROOT}/{proxy.id}")
    sys.stdout.write(f'Workspace proxy "{proxy.name}" has been deleted.\n')
    return 0


@implements(LIST)
def _list(invocation: Invocation[WorkspaceProxyLsOptions]) -> int:
    client = session.client(invocation)
    with add_action_to_errors("list workspace proxies"):
        answer = client.request("GET", _ROOT)
    if invocation.options.output == "json":
        print_json(as_object(answer.json())["regions"] or [])
        return 0
    proxies = read(answer, WorkspaceProxiesResponse).regions
    if not proxies:
        say("No workspace proxies found.")
        return 0
    if invocation.options.output == "text":
        for proxy in proxies:
            row = _row(proxy)
            sys.stdout.write(f"{row['name']}  {row['url']}  {row['proxy status']}\n".replace("None", ""))
        return 0
    print_table(chosen_columns(invocation), [_row(proxy) for proxy in proxies])
    return 0
