"""Logins at external providers that a template needs: asked for before anything is built.

The page opens in the browser; the command goes on by itself once the person has logged in there.
"""

from __future__ import annotations

import sys
import time
from typing import Any
from urllib.parse import quote

from coder.base.errors import CoderError
from coder.cli.command import Invocation
from coder.cli.output import say
from coder.net.blocking import BlockingClient

LIMIT = 900.0
"""Seconds a person gets for one login: as long as device codes live."""
_LOOK = 1.0


def require_logins(invocation: Invocation, client: BlockingClient, version_id: str, owner: str) -> None:
    """Returns when `owner` (an id, a name or `me`) has every login the version needs. Raises CoderError."""
    path = f"/api/v2/templateversions/{version_id}/external-auth"
    if not _missing(client, path):
        return
    me = client.request("GET", "/api/v2/users/me").json()
    whose = me if owner == "me" else client.request("GET", f"/api/v2/users/{quote(owner, safe='')}").json()
    theirs = f"{path}?user_id={whose['id']}"
    for provider in _missing(client, theirs):
        name, page = provider["display_name"], provider["authenticate_url"]
        if whose["id"] != me["id"]:
            raise CoderError("external_login", f"{whose['username']} must log in with {name} first", f"At {page}")
        sys.stdout.write(f"You must authenticate with {name} to build this workspace. Visit:\n\n\t{page}\n\n")
        sys.stdout.flush()
        _open(invocation, page)
        _wait(client, theirs, provider)
        say(f"Authenticated with {name}.")


def _missing(client: BlockingClient, path: str) -> list[dict[str, Any]]:
    found = client.request("GET", path).json()
    return [one for one in found if not one["authenticated"] and not one.get("optional")]


def _open(invocation: Invocation, page: str) -> None:
    if invocation.globals["no_open"] or not sys.stdin.isatty():
        return
    import webbrowser

    webbrowser.open(page)


def _wait(client: BlockingClient, path: str, provider: dict[str, Any]) -> None:
    end = time.monotonic() + LIMIT
    while any(one["id"] == provider["id"] for one in _missing(client, path)):
        if time.monotonic() > end:
            raise CoderError("external_login", f"nobody logged in with {provider['display_name']} in time")
        time.sleep(_LOOK)
