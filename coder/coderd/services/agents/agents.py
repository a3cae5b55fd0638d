"""Agents as users read them, and the SSH key an agent fetches over HTTP.

Access is `agent_access.py`, the RPC service `agent_api`; following metadata is
`services/workspaces/agent_streams.py`; requests to an agent over the mesh are `agent_http.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.agents.agents import WorkspaceAgent
from coder.api.base.refusals import NotFound
from coder.api.login.external_auth import AgentGitSSHKey
from coder.coderd.services.access.workspace_access import reveals_values
from coder.coderd.services.agents.agent_access import UNKNOWN, load_agent, require_user_data
from coder.coderd.services.agents.agent_view import AgentParts, present_agent, view_context
from coder.coderd.services.people import git_ssh_keys
from coder.coderd.store.agents import agent_apps as app_store
from coder.coderd.store.agents import agent_scripts as script_store
from coder.coderd.store.agents import system_agents
from coder.coderd.store.agents.agents import CurrentAgent
from coder.coderd.store.people import git_ssh_keys as ssh_key_store
from coder.domain.access.policy import Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


async def get_agent(ctx: Context, subject: Subject, agent_id: UUID) -> WorkspaceAgent:
    current = await load_agent(ctx, subject, agent_id)
    parts = await ctx.db.read(load_parts, agent_id)
    if parts is None:
        raise NotFound(UNKNOWN)
    reveals = reveals_values(subject, current)
    return present_agent(parts, view_context(ctx, current.workspace_name, current.owner_username, reveals=reveals))


async def load_parts(tx: Tx, agent_id: UUID) -> AgentParts | None:
    """Load an agent with the parts that its JSON includes."""
    detail = await system_agents.get_agent_detail(tx, agent_id)
    if detail is None:
        return None
    apps = await app_store.list_apps(tx, [agent_id])
    scripts = await script_store.list_scripts(tx, [agent_id])
    return AgentParts(detail.agent, detail.log_sources, apps, scripts)


async def get_git_ssh_key(ctx: Context, current: CurrentAgent) -> AgentGitSSHKey:
    """Return the owner's key pair with the private key, for use inside the owner's workspace."""
    await require_user_data(ctx, current)
    key = await ctx.db.read(ssh_key_store.get_git_ssh_key, current.owner_id)
    if key is None:
        raise NotFound("The workspace's owner has no SSH key.")
    return AgentGitSSHKey(public_key=key.public_key, private_key=git_ssh_keys.opened(ctx, key.private_key))


def external_auth_unknown(match: str) -> NotFound:
    """Return the error for a URL or id without a provider."""
    return NotFound(
        f'No matching external auth provider found in Coder for the url "{match}".',
        "External auth provider not found.",
    )
