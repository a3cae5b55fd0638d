"""Access to a workspace's applications: from an address and a caller to a ticket, or to a refusal.

This module defines the meaning of sharing levels. An address by path is more restricted than one by host, because its
pages share the dashboard's origin. Levels have three sources: a template's `coder_app`
(provisionerd/terraform/extract/agents.py, stored by services/provisioning/resources.py), shares of ports
(services/workspaces/port_shares.py), and apps that agents create for dev containers (services/agents/sub_agents.py).
The last two are limited by the template's current port sharing level. Elsewhere: bytes (`appproxy/apps`), tickets
(`app_tokens.py`), addresses (`domain/apps/app_addresses.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING
from uuid import UUID

from coder.appproxy.apps.app_refusals import AppLocation, AppRefusedError, Reason, app_port
from coder.appproxy.apps.app_tickets import Ticket
from coder.coderd.services.access.workspace_access import workspace_resource
from coder.coderd.services.agents.agent_view import status_of
from coder.coderd.store.agents import agent_apps as app_store
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.engine.names import as_id
from coder.coderd.store.people import system_users
from coder.coderd.store.templates import system_templates
from coder.coderd.store.workspaces import port_shares as share_store
from coder.coderd.store.workspaces import system_workspaces
from coder.domain.access.policy import NIL, Subject, allowed_ids, decide, scope_allows
from coder.domain.agents.sub_agents import is_from_template
from coder.domain.apps.app_addresses import AppRequest, parse_port
from coder.domain.foundation.share_levels import shared_at_most
from coder.domain.workspaces.workspaces import MIN_SHARED_PORT

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.agents.agent_apps import AppRow
    from coder.coderd.store.agents.agents import AgentRow
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.workspaces.workspaces import WorkspaceView


@dataclass(frozen=True, slots=True)
class AppContext:
    """Data of one application that a decision, a page or the connection log needs."""

    request: AppRequest
    view: WorkspaceView
    agent: AgentRow | None
    app: AppRow | None
    sharing_level: str
    app_url: str
    cors_behavior: str

    @property
    def location(self) -> AppLocation:
        """Location of the application, as far as its visitor may know it."""
        return AppLocation(
            self.view.owner_username,
            self.view.workspace.name,
            self.agent.name if self.agent else "",
            self.app.url if self.app and self.app.external else "",
        )


class VisibleRefusalError(AppRefusedError):
    """A refusal that names the application."""

    def __init__(self, reason: Reason, app_context: AppContext, detail: str = "") -> None:
        super().__init__(reason, detail, app_context.location)
        self.app_context = app_context


class HiddenRefusalError(AppRefusedError):
    """A refusal that hides the application from its visitor."""

    def __init__(self, app_context: AppContext) -> None:
        super().__init__("not_found")
        self.app_context = app_context


async def open_app(ctx: Context, request: AppRequest, subject: Subject | None) -> tuple[Ticket, AppContext]:
    """Issue a ticket for an application to `subject` (None: not signed in). Raises AppRefusedError."""
    if request.access_method == "path" and ctx.config.disable_path_apps:
        raise AppRefusedError("path_apps_off")
    if request.access_method == "path" and parse_port(request.app_slug_or_port):
        raise AppRefusedError("sign_in" if subject is None else "port_by_path")
    app_context = await ctx.db.read(_load, request, ctx.clock.now())
    missing = AppRefusedError("sign_in" if subject is None else "not_found")
    if app_context is None:
        raise missing
    level = _effective_level(ctx, app_context)
    if not _allows(ctx, app_context, level, subject):
        # The connection log shows the application to auditors; the visitor learns nothing about it.
        raise missing if subject is None or app_context.agent is None else HiddenRefusalError(app_context)
    _require_running(app_context)
    ticket = Ticket(
        request,
        workspace_id=app_context.view.workspace.id,
        agent_id=_require_ready(ctx, app_context).id,
        app_url=app_context.app_url,
        user_id=subject.user_id if subject else NIL,
        cors_behavior=app_context.cors_behavior,
        key_id=subject.key_id if subject else "",
    )
    return ticket, app_context


async def _load(tx: Tx, request: AppRequest, now: datetime) -> AppContext | None:
    view = await _find_workspace(tx, request)
    if view is None:
        return None
    agents = [detail.agent for detail in await agent_store.list_agents_of_jobs(tx, [view.latest.job.id])]
    template = await system_templates.get_template(tx, view.workspace.template_id)
    cors = template.cors_behavior if template else "simple"
    port = request.port
    if port is not None:
        agent = next(
            (candidate for candidate in agents if _is_named(candidate.name, request.agent_name_or_id, candidate.id)),
            None,
        )
        level = "owner"
        for share in await share_store.list_port_shares(tx, view.workspace.id, now):
            if share.port == port.number and agent is not None and share.agent_name == agent.name:
                level = shared_at_most(share.share_level, view.template.max_port_share_level)
        # A stopped workspace has no agents: its owner should read that it is stopped.
        return AppContext(request, view, agent, None, level, port.url, cors)
    apps = [detail.app for detail in await app_store.list_apps(tx, [agent.id for agent in agents])]
    by_id = {agent.id: agent for agent in agents}
    with_slug = [app for app in apps if app.slug.lower() == request.app_slug_or_port.lower()]
    agent_reference = request.agent_name_or_id
    exact = (
        [app for app in with_slug if _is_named(by_id[app.agent_id].name, agent_reference, app.agent_id)]
        if agent_reference
        else with_slug
    )
    if agent_reference and not exact and request.access_method == "subdomain":
        exact = with_slug  # older addresses name an agent that a slug does not need
    if not exact:
        return AppContext(request, view, None, None, "owner", "", cors)
    app = exact[0]
    agent, level = by_id[app.agent_id], app.sharing_level
    if agent.parent_id is not None and not is_from_template(
        agent.id, chain.from_iterable(a.devcontainers for a in agents)
    ):
        level = shared_at_most(level, view.template.max_port_share_level)
    return AppContext(request, view, agent, app, level, app.url, cors)


def _is_named(name: str, reference: str, identity: UUID) -> bool:
    return name.lower() == reference.lower() or str(identity) == reference.lower()


async def _find_workspace(tx: Tx, request: AppRequest) -> WorkspaceView | None:
    if "\0" in request.username_or_id + request.workspace_name_or_id:
        return None  # no name has one, and PostgreSQL refuses it as a parameter
    owner_id = as_id(request.username_or_id)
    if owner_id is None:
        owner = await system_users.get_user_by_name(tx, request.username_or_id)
        owner_id = owner.id if owner else None
    if owner_id is None:
        return None
    workspace_id = as_id(request.workspace_name_or_id)
    if workspace_id is not None:
        view = await system_workspaces.get_view(tx, workspace_id)
        return view if view and not view.workspace.deleted and view.workspace.owner_id == owner_id else None
    return await system_workspaces.get_view_by_name(tx, owner_id, request.workspace_name_or_id)


async def find_workspace_id(ctx: Context, request: AppRequest) -> UUID | None:
    """Return the workspace that an address names, without checking permission. None for a deleted or unknown one."""
    view = await ctx.db.read(_find_workspace, request)
    return view.workspace.id if view else None


def _effective_level(ctx: Context, app_context: AppContext) -> str:
    if app_context.request.access_method == "path" and not ctx.config.dangerous_allow_path_app_sharing:
        return "owner"
    return app_context.sharing_level


def _allows(ctx: Context, app_context: AppContext, level: str, subject: Subject | None) -> bool:
    if subject is None:
        return level == "public"
    row = app_context.view.workspace
    by_path = app_context.request.access_method == "path"
    is_owner = subject.user_id == row.owner_id
    # A page under our own origin acts with its visitor's permissions: users must not be lured into another user's page.
    by_role = is_owner or not by_path or level != "owner" or ctx.config.dangerous_allow_path_app_site_owner_access
    if by_role and decide(subject, "application_connect", workspace_resource(row, dormant=False)):
        return True
    if level == "public":
        return True
    if not scope_allows(subject, "application_connect", "workspace"):
        return False
    ids = allowed_ids(subject, "workspace")
    if ids is not None and str(row.id) not in ids:
        return False
    return level == "authenticated" or (level == "organization" and row.organization_id in subject.organization_roles)


def _require_running(app_context: AppContext) -> None:
    """Raise AppRefusedError for a workspace that is dormant or stopped."""
    view = app_context.view
    if view.workspace.dormant_at is not None:
        raise VisibleRefusalError("workspace_dormant", app_context)
    if view.latest.build.transition != "start":
        raise VisibleRefusalError("workspace_offline", app_context, view.latest.status)
    if app_context.agent is None:
        if view.latest.job.status in {"pending", "running"}:
            raise VisibleRefusalError("workspace_offline", app_context, view.latest.status)
        raise AppRefusedError("not_found")


def _require_ready(ctx: Context, app_context: AppContext) -> AgentRow:
    """Return the agent if it and the application can be reached. Raises AppRefusedError."""
    agent, app = app_context.agent, app_context.app
    if agent is None:
        raise AppRefusedError("not_found")
    if app is not None and (app.external or not app.url):
        raise VisibleRefusalError("not_web", app_context, "external" if app.external else "command")
    if app_port(app_context.app_url) < MIN_SHARED_PORT:
        raise VisibleRefusalError("reserved_port", app_context)
    status = status_of(agent, ctx.clock.now())
    if status != "connected":
        raise VisibleRefusalError("agent_offline", app_context, status)
    return agent


async def recheck_ticket(ctx: Context, ticket: Ticket) -> None:
    """Check that the application of a ticket is still available. Raises AppRefusedError."""
    app_context = await ctx.db.read(_load, ticket.request, ctx.clock.now())
    if app_context is None:
        raise AppRefusedError("not_found")
    _require_running(app_context)
    _require_ready(ctx, app_context)


async def cors_of(ctx: Context, request: AppRequest) -> str:
    """Return the CORS behavior of the workspace's template; `simple` for an unknown workspace."""
    return await ctx.db.read(_cors_of, request)


async def _cors_of(tx: Tx, request: AppRequest) -> str:
    view = await _find_workspace(tx, request)
    template = await system_templates.get_template(tx, view.workspace.template_id) if view else None
    return template.cors_behavior if template else "simple"
