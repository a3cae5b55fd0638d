"""Plain WireGuard clients of a user, and what their configurations say about this server."""

from __future__ import annotations

from datetime import timedelta

from msgspec import UNSET
from quart import Blueprint, Response

from coder.api.wireguard_clients import CreateWireguardClientRequest, CreateWireguardClientResponse
from coder.coderd.http.audited import origin
from coder.coderd.http.auth import authenticated, context, subject
from coder.coderd.http.json import no_content, read_body, reply
from coder.coderd.services import users
from coder.coderd.services import wireguard_clients as clients

blueprint = Blueprint("wireguard_clients", __name__, url_prefix="/api/v2")


@blueprint.get("/wireguard")
@authenticated
async def get_server() -> Response:
    return reply(await clients.server_view(context()))


@blueprint.get("/users/<user>/wireguard-clients")
@authenticated
async def get_clients(user: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    return reply(await clients.list_clients(context(), subject(), row))


@blueprint.post("/users/<user>/wireguard-clients")
@authenticated
async def post_client(user: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    body = await read_body(CreateWireguardClientRequest, ("name", "public_key"))
    wanted = clients.NewClient(
        name=body.name,
        public_key=body.public_key,
        lifetime=timedelta(seconds=body.lifetime_seconds) if body.lifetime_seconds is not UNSET else timedelta(),
        workspace_ids=body.workspace_ids if body.workspace_ids is not UNSET else None,
    )
    made = await clients.add_client(context(), subject(), row, wanted, origin())
    return reply(CreateWireguardClientResponse(client=made, server=await clients.server_view(context())), 201)


@blueprint.get("/users/<user>/wireguard-clients/<client>")
@authenticated
async def get_client(user: str, client: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    return reply(await clients.get_client(context(), subject(), row, client))


@blueprint.delete("/users/<user>/wireguard-clients/<client>")
@authenticated
async def delete_client(user: str, client: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    await clients.remove_client(context(), subject(), row, client, origin())
    return no_content()
