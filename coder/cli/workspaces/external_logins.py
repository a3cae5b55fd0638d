"""Logins at external providers that a template requires, checked before a build.

The login page opens in the browser; the command continues after the login.
"""

from __future__ import annotations

import sys
import time
from urllib.parse import quote
from uuid import UUID

from coder.api.login.external_auth import TemplateVersionExternalAuth
from coder.api.people.users import User
from coder.base.errors import CoderError
from coder.cli.core.command import Invocation
from coder.cli.core.options import Options
from coder.cli.ui.output import say
from coder.client.answers import read
from coder.client.patience import read_patiently
from coder.net.blocking import BlockingClient

LIMIT = 900.0
"""Seconds for one login: the lifetime of device codes."""
_POLL_SECONDS = 1.0


def require_logins(
    invocation: Invocation[Options], client: BlockingClient, version_id: UUID, owner: UUID | str
) -> None:
    """Return when `owner` (an id, a name or `me`) has every login that the version requires. Raise CoderError."""
    path = f"/api/v2/templateversions/{version_id}/external-auth"
    if not _missing(client, path):
        return
    me = read(client.request("GET", "/api/v2/users/me"), User)
    owner_path = f"/api/v2/users/{quote(str(owner), safe='')}"
    whose = me if owner == "me" else read(client.request("GET", owner_path), User)
    owner_path = f"{path}?user_id={whose.id}"
    for provider in _missing(client, owner_path):
        name, page = provider.display_name, provider.authenticate_url
        if whose.id != me.id:
            raise CoderError("external_login", f"{whose.username} must log in with {name} first", f"At {page}")
        sys.stdout.write(f"You must authenticate with {name} to build this workspace. Visit:\n\n\t{page}\n\n")
        sys.stdout.flush()
        _open(invocation, page)
        _wait(client, owner_path, provider)
        say(f"Authenticated with {name}.")


def _missing(client: BlockingClient, path: str) -> list[TemplateVersionExternalAuth]:
    providers = read(read_patiently(client, path), list[TemplateVersionExternalAuth])
    return [provider for provider in providers if not provider.authenticated and not provider.optional]


def _open(invocation: Invocation[Options], page: str) -> None:
    if invocation.globals.no_open or not sys.stdin.isatty():
        return
    import webbrowser

    webbrowser.open(page)


def _wait(client: BlockingClient, path: str, provider: TemplateVersionExternalAuth) -> None:
    end = time.monotonic() + LIMIT
    while any(item.id == provider.id for item in _missing(client, path)):
        if time.monotonic() > end:
            raise CoderError("external_login", f"timed out waiting for a login with {provider.display_name}")
        time.sleep(_POLL_SECONDS)
