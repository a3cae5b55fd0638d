"""Access to agents: the agent behind a token, the agents a user may reach, and the agents that receive user data."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Forbidden, NotFound, Unauthenticated
from coder.coderd.services.access import owner_identity
from coder.coderd.services.access.authorization import require
from coder.coderd.services.access.workspace_access import agent_resource
from coder.coderd.services.agents import agent_tokens
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.agents.agents import AgentPlace as AgentPlace
from coder.domain.access.policy import Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.domain.access.credentials import Credentials


UNKNOWN = "Agent doesn't exist with that id, or you do not have access to it."
_NOT_AUTHORIZED = (
    "The agent cannot authenticate until the workspace provision job has been completed. If the job is no longer "
    "running, this agent is invalid."
)


async def authenticate_agent(ctx: Context, credentials: Credentials) -> AgentPlace:
    """The current agent behind a token. Raises Unauthenticated: an older build's token is as good as none."""
    if not credentials.token:
        raise Unauthenticated('Cookie "coder_session_token" must be provided.')
    try:
        token = UUID(credentials.token)
    except ValueError as error:
        detail = f"An agent token must be a valid UUIDv4. (len {len(credentials.token)})"
        raise Unauthenticated("Workspace agent token invalid.", detail) from error
    place = await ctx.db.read(find_by_token, token)
    if place is None:
        raise Unauthenticated("Workspace agent not authorized.", _NOT_AUTHORIZED)
    if place.rotated_token is not None:
        await agent_tokens.note_use(ctx, place, place.rotated_token, credentials.remote_ip)
    return place


async def find_by_token(tx: Tx, token: UUID) -> AgentPlace | None:
    """The current agent behind a token; None for one that is good no longer. The one rule of the door and of every
    look after it."""
    place = await agent_store.get_agent_by_token(tx, token)
    return None if place is None or place.owner_status == "suspended" else place


async def find_again(tx: Tx, place: AgentPlace) -> AgentPlace | None:
    """What a link was let in for, as it is now; None when it would not be let in for that again."""
    current = await find_by_token(tx, place.rotated_token or place.agent.auth_token)
    return current if current is not None and current.build_id == place.build_id else None


async def require_again(ctx: Context, place: AgentPlace) -> None:
    """For who waits long on what it was let in for. Raises Unauthenticated."""
    if await ctx.db.read(find_again, place) is None:
        raise Unauthenticated("Workspace agent not authorized.", _NOT_AUTHORIZED)


async def load_agent(ctx: Context, subject: Subject, agent_id: UUID, action: str = "read") -> AgentPlace:
    """A current agent whose workspace `subject` may read (and do `action` to).

    Raises NotFound (also for agents of older builds), Forbidden.
    """
    place = await ctx.db.read(agent_store.get_agent_place, agent_id)
    if place is None:
        raise NotFound(UNKNOWN)
    try:
        require(subject, "read", agent_resource(place))
    except NotFound as error:
        raise NotFound(UNKNOWN) from error
    if action != "read":
        require(subject, action, agent_resource(place))
    return place


async def gets_user_data(ctx: Context, place: AgentPlace) -> bool:
    """Return whether this agent may have its owner's keys, tokens and secrets: the template allows it
    (`api_key_scope`), and the owner still is an active member of the workspace's organization."""
    if place.agent.api_key_scope == "no_user_data":
        return False
    return await ctx.db.read(owner_identity.is_delivered, place.owner_id, place.organization_id)


async def require_user_data(ctx: Context, place: AgentPlace) -> None:
    """Raises Forbidden for an agent that gets nothing of its owner's."""
    if not await gets_user_data(ctx, place):
        raise Forbidden("This agent may not read its owner's data.")


async def require_user_data_again(ctx: Context, place: AgentPlace) -> None:
    """The same for a call that waits long. Raises Unauthenticated, Forbidden."""
    await require_again(ctx, place)
    await require_user_data(ctx, place)


async def find_agent_place(ctx: Context, agent_id: UUID) -> AgentPlace | None:
    """Where an agent of a newest build stands, whoever asks; None for every other id."""
    return await ctx.db.read(agent_store.get_agent_place, agent_id)
