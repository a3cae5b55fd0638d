"""Plain WireGuard clients of a user, and the server section of their configurations."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.wireguard.wireguard_clients import (
    CreateWireguardClientRequest,
    CreateWireguardClientResponse,
    WireguardClient,
    WireguardServer,
)
from coder.coderd.http.server.audited import origin
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.json import no_content, read_body, reply
from coder.coderd.http.server.route import route
from coder.coderd.services.people import users
from coder.coderd.services.wireguard import new_wireguard_clients, wireguard_server
from coder.coderd.services.wireguard import wireguard_clients as clients

blueprint = Blueprint("wireguard_clients", __name__, url_prefix="/api/v2")


@route(blueprint, "GET", "/wireguard", scope="api_key:read", answers=WireguardServer)
async def get_server() -> Response:
    """Return the server section of every configuration."""
    return reply(await wireguard_server.server_view(context()))


@route(blueprint, "GET", "/users/<user>/wireguard-clients", scope="api_key:read", answers=list[WireguardClient])
async def get_clients(user: str) -> Response:
    """Return a user's clients, expired ones too."""
    row = await users.resolve_user(context(), subject(), user)
    return reply(await clients.list_clients(context(), subject(), row))


@route(
    blueprint,
    "POST",
    "/users/<user>/wireguard-clients",
    scope="api_key:create",
    body=CreateWireguardClientRequest,
    required=("name", "public_key"),
    answers=CreateWireguardClientResponse,
    status=201,
    refuses=(409,),
)
async def post_client(user: str) -> Response:
    """Create a client."""
    row = await users.resolve_user(context(), subject(), user)
    body = await read_body(CreateWireguardClientRequest)
    created = await new_wireguard_clients.add_client(context(), subject(), row, body, origin())
    return reply(
        CreateWireguardClientResponse(client=created, server=await wireguard_server.server_view(context())), 201
    )


@route(blueprint, "GET", "/users/<user>/wireguard-clients/<client>", scope="api_key:read", answers=WireguardClient)
async def get_client(user: str, client: str) -> Response:
    """Return a client by name or id."""
    row = await users.resolve_user(context(), subject(), user)
    return reply(await clients.get_client(context(), subject(), row, client))


@route(blueprint, "DELETE", "/users/<user>/wireguard-clients/<client>", scope="api_key:delete", status=204)
async def delete_client(user: str, client: str) -> Response:
    """Delete a client by name or id; it is disconnected when the transaction's notice arrives, milliseconds later."""
    row = await users.resolve_user(context(), subject(), user)
    await clients.remove_client(context(), subject(), row, client, origin())
    return no_content()
