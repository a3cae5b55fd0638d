"""`coder tokens`: long-lived keys for scripts."""

from __future__ import annotations

import sys
from datetime import timedelta
from urllib.parse import quote

from msgspec.structs import asdict

from coder.api.access.keys import APIKey, APIKeyWithOwner, GenerateAPIKeyResponse, TokenConfig
from coder.base.config import Option
from coder.base.duration import format_duration, parse_duration
from coder.base.errors import CoderError
from coder.cli.core import session
from coder.cli.core.command import Command, Invocation, column_option, output_option
from coder.cli.core.failures import add_action_to_errors
from coder.cli.ui.output import Row, go_time, print_rows, say
from coder.client.answers import read, read_rows
from coder.net.blocking import BlockingClient, HttpAnswer
from coder.net.errors import HttpError

COLUMNS = ("id", "name", "scopes", "allow list", "last used", "expires at", "created at", "owner")


def _create(invocation: Invocation) -> int:
    client = session.client(invocation)
    user = quote(invocation["user"] or "me")
    body: dict[str, object] = {
        "lifetime": int(_lifetime(invocation, client, user).total_seconds()) * 10**9,
        "token_name": invocation["name"],
    }
    if invocation["scope"]:
        body["scopes"] = list(invocation["scope"])
    if invocation["allow"]:
        body["allow_list"] = list(invocation["allow"])
    with add_action_to_errors("create tokens"):
        created = read(client.request("POST", f"/api/v2/users/{user}/keys/tokens", json=body), GenerateAPIKeyResponse)
    sys.stdout.write(created.key + "\n")
    return 0


def _lifetime(invocation: Invocation, client: BlockingClient, user: str) -> timedelta:
    """Return the requested lifetime, or the maximum allowed."""
    config = read(client.request("GET", f"/api/v2/users/{user}/keys/tokens/tokenconfig"), TokenConfig)
    longest = timedelta(microseconds=config.max_token_lifetime / 1000)
    text = invocation["lifetime"]
    if not text:
        return longest
    try:
        requested = parse_duration(text)
    except CoderError as error:
        raise CoderError("lifetime", f'parse lifetime: invalid duration format: "{text}"') from error.__cause__
    if requested > longest:
        raise CoderError(
            "lifetime",
            f"lifetime ({format_duration(requested)}) is greater than the maximum allowed lifetime "
            f"({format_duration(longest)})",
        )
    return requested


def _list(invocation: Invocation) -> int:
    client = session.client(invocation)
    query = f"include_all={str(invocation['all']).lower()}&include_expired={str(invocation['include_expired']).lower()}"
    with add_action_to_errors("list tokens"):
        tokens = read_rows(client.request("GET", f"/api/v2/users/me/keys/tokens?{query}"), APIKeyWithOwner)
    if not tokens and invocation["output"] != "json":
        say("No tokens found.")
        return 0
    if invocation["all"] and not invocation.given("column"):
        _print(invocation, tokens, (*invocation["column"], "owner"))
    else:
        _print(invocation, tokens)
    return 0


def _print(
    invocation: Invocation, tokens: list[tuple[APIKeyWithOwner, dict[str, object]]], columns: tuple[str, ...] = ()
) -> None:
    from coder.cli.ui.output import print_table

    if columns and invocation["output"] != "json":
        print_table(columns, [_row(token) for token, _ in tokens])
        return
    print_rows(
        invocation,
        lambda: [_row(token) for token, _ in tokens],
        lambda: [{key: raw[key] for key in raw if key != "username"} for _, raw in tokens],
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


def _view(invocation: Invocation) -> int:
    client = session.client(invocation)
    answer = _find(client, invocation.args[0])
    token = read(answer, APIKey)
    listed = read(client.request("GET", "/api/v2/users/me/keys/tokens?include_all=true"), list[APIKeyWithOwner])
    owner = next((item.username for item in listed if item.id == token.id), "")
    _print(invocation, [(APIKeyWithOwner(**asdict(token), username=owner), answer.json())])
    return 0


def _remove(invocation: Invocation) -> int:
    client = session.client(invocation)
    token = read(_find(client, invocation.args[0]), APIKey)
    path = f"/api/v2/users/{token.user_id}/keys/{token.id}"
    if invocation["delete"]:
        with add_action_to_errors("delete api key"):
            client.request("DELETE", path)
        sys.stdout.write("Token has been deleted.\n")
        return 0
    with add_action_to_errors("expire api key"):
        client.request("PUT", f"{path}/expire")
    sys.stdout.write("Token has been expired.\n")
    return 0


CREATE = Command(
    words="tokens create",
    summary="Create a token",
    run=_create,
    max_args=0,
    options=(
        Option(
            "lifetime",
            "lifetime",
            "CODER_TOKEN_LIFETIME",
            help="Lifetime of the token, like 8h, 30d or 1y; defaults to the maximum allowed.",
        ),
        Option(
            "name",
            "name",
            "CODER_TOKEN_NAME",
            short="n",
            help="Name of the token, like ci; generated if not set.",
        ),
        Option(
            "user",
            "user",
            "CODER_TOKEN_USER",
            short="u",
            help="Owner of the token, by name or id; defaults to the current user.",
        ),
        Option(
            "scope",
            "scope",
            kind="string-array",
            default=(),
            help="Scope of the token, like workspace:read; defaults to all your permissions.",
        ),
        Option(
            "allow",
            "allow",
            kind="allow-list",
            default=(),
            help="Resource the token can access, like workspace:<id>; defaults to all.",
        ),
    ),
)
LIST = Command(
    words="tokens list",
    summary="List tokens",
    run=_list,
    max_args=0,
    options=(
        Option(
            "all",
            "all",
            short="a",
            kind="bool",
            default=False,
            help="List all tokens you can see, not only your own.",
        ),
        Option(
            "include_expired",
            "include-expired",
            kind="bool",
            default=False,
            help="Also list tokens that have expired.",
        ),
        column_option(COLUMNS, COLUMNS[:-1]),
        output_option(),
    ),
)
VIEW = Command(
    words="tokens view",
    summary="Display detailed information about a token",
    usage="<name|id>",
    run=_view,
    min_args=1,
    max_args=1,
    options=(column_option(COLUMNS, COLUMNS), output_option()),
)
REMOVE = Command(
    words="tokens remove",
    summary="Expire or delete a token",
    usage="<name|id|token>",
    run=_remove,
    min_args=1,
    max_args=1,
    options=(
        Option(
            "delete",
            "delete",
            kind="bool",
            default=False,
            help="Delete the token instead of expiring it, so that lists omit it.",
        ),
    ),
)
