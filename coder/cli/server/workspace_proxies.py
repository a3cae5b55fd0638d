"""`coder workspace-proxy`: proxies that serve workspaces close to their users."""

from __future__ import annotations

import sys
from urllib.parse import quote

from coder.api.proxies.proxies import UpdateWorkspaceProxyResponse, WorkspaceProxiesResponse, WorkspaceProxy
from coder.base.config import Option
from coder.base.errors import CoderError
from coder.cli.core import session
from coder.cli.core.command import YES, Command, Invocation, column_option, output_option
from coder.cli.core.failures import add_action_to_errors
from coder.cli.ui.output import ask, chosen_columns, confirm, fields_of, go_time, print_json, print_table, say
from coder.client.answers import read
from coder.net.blocking import BlockingClient, HttpAnswer

COLUMNS = (
    "id",
    "name",
    "display name",
    "icon url",
    "healthy",
    "url",
    "wildcard hostname",
    "derp enabled",
    "derp only",
    "proxy status",
    "proxy report",
    "proxy checked at",
    "created at",
    "updated at",
    "deleted",
    "version",
)
WITH_TOKEN = (*COLUMNS, "proxy token")
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


def _create(invocation: Invocation) -> int:
    name = invocation["name"]
    if not name and invocation["no_prompt"]:
        raise CoderError("name", "a proxy requires a name", "Give --name.")
    body = {
        "name": name or ask("Name of the proxy:"),
        "display_name": invocation["display_name"],
        "icon": invocation["icon"],
    }
    client = session.client(invocation)
    with add_action_to_errors("create workspace proxy"):
        created = client.request("POST", _ROOT, json=body)
    return _print_created(invocation, created, "created")


def _regenerate(invocation: Invocation) -> int:
    client = session.client(invocation)
    proxy = _fetch(client, invocation.args[0])
    body = {"id": proxy.id, "name": proxy.name, "display_name": proxy.display_name}
    body |= {"icon": proxy.icon_url, "regenerate_token": True}
    with add_action_to_errors("regenerate the proxy's token"):
        updated = client.request("PATCH", f"{_ROOT}/{proxy.id}", json=body)
    return _print_created(invocation, updated, "updated with a new token")


def _print_created(invocation: Invocation, answer: HttpAnswer, verb: str) -> int:
    updated = read(answer, UpdateWorkspaceProxyResponse)
    proxy, token = updated.proxy, updated.proxy_token
    if invocation["only_token"]:
        sys.stdout.write(f"{token}\n")
    elif invocation["output"] == "json":
        print_json(answer.json())
    elif invocation["output"] == "table":
        print_table(chosen_columns(invocation), [_row(proxy, token)])
    else:
        sys.stdout.write(f'Workspace proxy "{proxy.name}" has been {verb}. It authenticates with this token:\n\n')
        sys.stdout.write(f"  {token}\n\n")
        sys.stdout.write("Store it safely: it is not shown again. A proxy with the old token stops working.\n")
    return 0


def _fetch(client: BlockingClient, reference: str) -> WorkspaceProxy:
    with add_action_to_errors(f'fetch workspace proxy "{reference}"'):
        return read(client.request("GET", f"{_ROOT}/{quote(reference, safe='')}"), WorkspaceProxy)


def _edit(invocation: Invocation) -> int:
    changes = {flag: invocation[flag] for flag in ("name", "display_name", "icon") if invocation.given(flag)}
    if not changes:
        raise CoderError("nothing", "no changes were requested", "Set --name, --display-name or --icon.")
    client = session.client(invocation)
    proxy = _fetch(client, invocation.args[0])
    body = {"id": proxy.id, "name": proxy.name, "display_name": proxy.display_name, "icon": proxy.icon_url}
    with add_action_to_errors("edit workspace proxy"):
        answer = client.request("PATCH", f"{_ROOT}/{proxy.id}", json={**body, **changes})
    updated = read(answer, UpdateWorkspaceProxyResponse)
    if invocation["output"] == "json":
        print_json(answer.json()["proxy"])
    elif invocation["output"] == "table":
        print_table(chosen_columns(invocation), [_row(updated.proxy)])
    else:
        sys.stdout.write(f'Workspace proxy "{updated.proxy.name}" has been changed.\n')
    return 0


def _delete(invocation: Invocation) -> int:
    client = session.client(invocation)
    proxy = _fetch(client, invocation.args[0])
    confirm(invocation, f"Delete workspace proxy {proxy.name}?")
    with add_action_to_errors("delete workspace proxy"):
        client.request("DELETE", f"{_ROOT}/{proxy.id}")
    sys.stdout.write(f'Workspace proxy "{proxy.name}" has been deleted.\n')
    return 0


def _list(invocation: Invocation) -> int:
    client = session.client(invocation)
    with add_action_to_errors("list workspace proxies"):
        answer = client.request("GET", _ROOT)
    if invocation["output"] == "json":
        print_json(answer.json()["regions"] or [])
        return 0
    proxies = read(answer, WorkspaceProxiesResponse).regions
    if not proxies:
        say("No workspace proxies found.")
        return 0
    if invocation["output"] == "text":
        for proxy in proxies:
            row = _row(proxy)
            sys.stdout.write(f"{row['name']}  {row['url']}  {row['proxy status']}\n".replace("None", ""))
        return 0
    print_table(chosen_columns(invocation), [_row(proxy) for proxy in proxies])
    return 0


_ICON = Option("icon", "icon", help="Path or URL of the proxy's icon, like /emojis/1f30d.png.")
_DISPLAY = Option("display_name", "display-name", help="Display name, which can contain spaces and capitals.")
_ONLY = Option(
    "only_token",
    "only-token",
    kind="bool",
    default=False,
    help="Print only the proxy's token, for scripts.",
)
_TEXT = ("text", "json", "table")

CREATE = Command(
    words="workspace-proxy create",
    summary="Create a workspace proxy",
    run=_create,
    max_args=0,
    options=(
        Option("name", "name", help="Name of the proxy in lists and addresses; prompted for if not set."),
        _DISPLAY,
        _ICON,
        Option(
            "no_prompt",
            "no-prompt",
            kind="bool",
            default=False,
            help="Fail instead of prompting for missing values, for use in scripts.",
        ),
        _ONLY,
        column_option(WITH_TOKEN, ("name", "url", "proxy token")),
        output_option(_TEXT, "text"),
    ),
)
EDIT = Command(
    words="workspace-proxy edit",
    summary="Edit a workspace proxy",
    usage="<name|id>",
    run=_edit,
    min_args=1,
    max_args=1,
    options=(
        Option("name", "name", help="New name; links and scripts that use the old name stop working."),
        _DISPLAY,
        _ICON,
        column_option(COLUMNS, ("name", "url")),
        output_option(_TEXT, "text"),
    ),
)
LIST = Command(
    words="workspace-proxy ls",
    summary="List workspace proxies",
    run=_list,
    max_args=0,
    options=(
        column_option(COLUMNS, ("name", "url", "proxy status")),
        output_option(("table", "json", "text")),
    ),
)
DELETE = Command(
    words="workspace-proxy delete",
    summary="Delete a workspace proxy",
    usage="<name|id>",
    run=_delete,
    min_args=1,
    max_args=1,
    options=(YES,),
)
REGENERATE = Command(
    words="workspace-proxy regenerate-token",
    summary="Regenerate a workspace proxy's token; the old one is revoked",
    usage="<name|id>",
    run=_regenerate,
    min_args=1,
    max_args=1,
    options=(_ONLY, column_option(WITH_TOKEN, ("name", "url", "proxy token")), output_option(_TEXT, "text")),
)
