"""Access to agents: the agent behind a token, the agents a user may reach, and the agents that receive user data."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Forbidden, NotFound, Unauthenticated
from coder.coderd.services.access.authorization import require
from coder.coderd.services.access.owner_identity import IdentityTarget, is_delivered
from coder.coderd.services.access.workspace_access import agent_resource
from coder.coderd.services.agents import agent_tokens
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.agents import system_agents
from coder.coderd.store.agents.agents import CurrentAgent as CurrentAgent
from coder.domain.access.policy import Subject

if TYPE_CHECKING:
    from coder.coderd.config.settings import ServerConfig
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.domain.access.credentials import Credentials


UNKNOWN = "Agent doesn't exist with that id, or you do not have access to it."
_NOT_AUTHORIZED = (
    "The agent cannot authenticate until the workspace provision job has been completed. If the job is no longer "
    "running, this agent is invalid."
)


def is_token(text: str) -> bool:
    """Return whether a text has the form of an agent token: all others are refused without the database."""
    try:
        UUID(text)
    except ValueError:
        return False
    return True


async def authenticate_agent(ctx: Context, credentials: Credentials) -> CurrentAgent:
    """Return the current agent of a token. Raises Unauthenticated, also for an older build's token."""
    if not credentials.token:
        raise Unauthenticated('Cookie "coder_session_token" must be provided.')
    try:
        token = UUID(credentials.token)
    except ValueError as error:
        detail = f"An agent token must be a valid UUIDv4. (len {len(credentials.token)})"
        raise Unauthenticated("Workspace agent token invalid.", detail) from error
    current = await ctx.db.read(find_by_token, token)
    if current is None:
        raise Unauthenticated("Workspace agent not authorized.", _NOT_AUTHORIZED)
    if current.rotated_token is not None:
        await agent_tokens.note_use(ctx, current, current.rotated_token, credentials.remote_ip)
    return current


async def find_by_token(tx: Tx, token: UUID) -> CurrentAgent | None:
    """Return the current agent of a token; None for an invalid one. Authentication and later checks use this rule."""
    current = await agent_store.get_agent_by_token(tx, token)
    return None if current is None or current.owner_status == "suspended" else current


async def find_current_agent(tx: Tx, known: CurrentAgent) -> CurrentAgent | None:
    """Return the present state of an authenticated agent; None when its token would be rejected now."""
    current = await find_by_token(tx, known.rotated_token or known.agent.auth_token)
    return current if current is not None and current.build_id == known.build_id else None


async def require_current_agent(ctx: Context, current: CurrentAgent) -> None:
    """Require a valid token during a long call. Raises Unauthenticated."""
    if await ctx.db.read(find_current_agent, current) is None:
        raise Unauthenticated("Workspace agent not authorized.", _NOT_AUTHORIZED)


async def load_agent(ctx: Context, subject: Subject, agent_id: UUID, action: str = "read") -> CurrentAgent:
    """Load a current agent whose workspace `subject` may read, and may do `action` to.

    Raises NotFound (also for agents of older builds), Forbidden.
    """
    current = await ctx.db.read(system_agents.get_current_agent, agent_id)
    if current is None:
        raise NotFound(UNKNOWN)
    try:
        require(subject, "read", agent_resource(current))
    except NotFound as error:
        raise NotFound(UNKNOWN) from error
    if action != "read":
        require(subject, action, agent_resource(current))
    return current


async def may_read_user_data(ctx: Context, current: CurrentAgent) -> bool:
    """Return whether this agent may read its owner's keys, tokens and secrets.

    The template must allow it (`api_key_scope`), and the build must get the owner's identity.
    """
    return await ctx.db.read(may_read_user_data_in, ctx.config, current)


async def may_read_user_data_in(tx: Tx, config: ServerConfig, current: CurrentAgent) -> bool:
    """Return the same, as a part of other work on the database."""
    if current.agent.api_key_scope == "no_user_data":
        return False
    return await is_delivered(
        tx, config, IdentityTarget(current.owner_id, current.organization_id, current.build_initiator_id)
    )


async def require_user_data(ctx: Context, current: CurrentAgent) -> None:
    """Require permission to read the owner's data. Raises Forbidden."""
    if not await may_read_user_data(ctx, current):
        raise Forbidden("This agent may not read its owner's data.")


async def require_current_user_data(ctx: Context, current: CurrentAgent) -> None:
    """Require the same during a long call. Raises Unauthenticated, Forbidden."""
    await require_current_agent(ctx, current)
    await require_user_data(ctx, current)


async def find_agent_unchecked(ctx: Context, agent_id: UUID) -> CurrentAgent | None:
    """Return an agent of a latest build, without a check of permissions; None for every other id."""
    return await ctx.db.read(system_agents.get_current_agent, agent_id)
