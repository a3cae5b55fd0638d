"""`coder tokens`: long-lived keys for scripts."""

from __future__ import annotations

import sys
from datetime import timedelta
from urllib.parse import quote

from msgspec.structs import asdict

from coder.api.access.keys import APIKey, APIKeyWithOwner, GenerateAPIKeyResponse, TokenConfig
from coder.base.duration import format_duration, parse_duration
from coder.base.errors import CoderError
from coder.base.json_types import Json, JsonObject, as_object
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.failures import add_action_to_errors
from coder.cli.core.options import TableOptions
from coder.cli.declarations.people.tokens import (
    CREATE,
    LIST,
    REMOVE,
    VIEW,
    TokensCreateOptions,
    TokensListOptions,
    TokensRemoveOptions,
    TokensViewOptions,
)
from coder.cli.ui.output import Row, go_time, print_rows, print_table, say
from coder.client.answers import read, read_rows
from coder.net.blocking import BlockingClient, HttpAnswer
from coder.net.errors import HttpError


@implements(CREATE)
def _create(invocation: Invocation[TokensCreateOptions]) -> int:
    client = session.client(invocation)
    user = quote(invocation.options.user or "me")
    body: JsonObject = {
        "lifetime": int(_lifetime(invocation, client, user).total_seconds()) * 10**9,
        "token_name": invocation.options.name,
    }
    if invocation.options.scope:
        body["scopes"] = list(invocation.options.scope)
    if invocation.options.allow:
        body["allow_list"] = list(invocation.options.allow)
    with add_action_to_errors("create tokens"):
        created = read(client.request("POST", f"/api/v2/users/{user}/keys/tokens", json=body), GenerateAPIKeyResponse)
    sys.stdout.write(created.key + "\n")
    return 0


def _lifetime(invocation: Invocation[TokensCreateOptions], client: BlockingClient, user: str) -> timedelta:
    """Return the requested lifetime, or the maximum allowed."""
    config = read(client.request("GET", f"/api/v2/users/{user}/keys/tokens/tokenconfig"), TokenConfig)
    longest = timedelta(microseconds=config.max_token_lifetime / 1000)
    text = invocation.options.lifetime
    if not text:
        return longest
    try:
        requested = parse_duration(text)
    except CoderError as error:
        message = f'parse lifetime: invalid duration format: "{text}"'
        raise CoderError("lifetime", message, "Write it like 90m, 24h or 7d.") from error.__cause__
    if requested > longest:
        raise CoderError(
            "lifetime",
            f"lifetime ({format_duration(requested)}) is greater than the maximum allowed lifetime "
            f"({format_duration(longest)})",
        )
    return requested


@implements(LIST)
def _list(invocation: Invocation[TokensListOptions]) -> int:
    client = session.client(invocation)
    options = invocation.options
    query = f"include_all={str(options.all).lower()}&include_expired={str(options.include_expired).lower()}"
    with add_action_to_errors("list tokens"):
        tokens = read_rows(client.request("GET", f"/api/v2/users/me/keys/tokens?{query}"), APIKeyWithOwner)
    if not tokens and invocation.options.output != "json":
        say("No tokens found.")
        return 0
    if invocation.options.all and not invocation.given("column"):
        _print(invocation, tokens, (*invocation.options.column, "owner"))
    else:
        _print(invocation, tokens)
    return 0


def _print(
    invocation: Invocation[TableOptions],
    tokens: list[tuple[APIKeyWithOwner, Json]],
    columns: tuple[str, ...] = (),
) -> None:
    if columns and invocation.options.output != "json":
        print_table(columns, [_row(token) for token, _ in tokens])
        return
    print_rows(
        invocation,
        lambda: [_row(token) for token, _ in tokens],
        lambda: [{key: value for key, value in as_object(raw).items() if key != "username"} for _, raw in tokens],
    )


def _row(token: APIKeyWithOwner) -> Row:
    return {
        "id": token.id,
        "name": token.token_name,
        "scopes": "[" + " ".join(token.scopes) + "]",
        "allow list": "[" + " ".join(token.allow_list) + "]",
        "last used": go_time(token.last_used),
        "expires at": go_time(token.expires_at),
        "created at": go_time(token.created_at),
        "owner": token.username,
    }


def _find(client: BlockingClient, reference: str) -> HttpAnswer:
    """Return the token (APIKey) with this name, id or value."""
    with add_action_to_errors("fetch api key by name or id"):
        try:
            return client.request("GET", f"/api/v2/users/me/keys/tokens/{quote(reference, safe='')}")
        except HttpError as error:
            if error.status != 404:
                raise
            ident = reference.partition("-")[0] if len(reference) == 33 else reference
            return client.request("GET", f"/api/v2/users/me/keys/{quote(ident, safe='')}")


@implements(VIEW)
def _view(invocation: Invocation[TokensViewOptions]) -> int:
    client = session.client(invocation)
    answer = _find(client, invocation.args[0])
    token = read(answer, APIKey)
    listed = read(client.request("GET", "/api/v2/users/me/keys/tokens?include_all=true"), list[APIKeyWithOwner])
    owner = next((item.username for item in listed if item.id == token.id), "")
    _print(invocation, [(APIKeyWithOwner(**asdict(token), username=owner), as_object(answer.json()))])
    return 0


@implements(REMOVE)
def _remove(invocation: Invocation[TokensRemoveOptions]) -> int:
    client = session.client(invocation)
    token = read(_find(client, invocation.args[0]), APIKey)
    path = f"/api/v2/users/{token.user_id}/keys/{token.id}"
    if invocation.options.delete:
        with add_action_to_errors("delete api key"):
            client.request("DELETE", path)
        sys.stdout.write("Token has been deleted.\n")
        return 0
    with add_action_to_errors("expire api key"):
        client.request("PUT", f"{path}/expire")
    sys.stdout.write("Token has been expired.\n")
    return 0
