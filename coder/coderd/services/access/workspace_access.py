"""Who may do what to a workspace: rows as the policy's resources, and loading with the question asked.

Everything that reads a workspace goes through `load_workspace`, everything that changes one through `lock_workspace`:
there is no way to a row around them. What changes a template goes through `lock_template`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from coder.api.base.refusals import NotFound
from coder.coderd.services.access.authorization import require
from coder.coderd.store.agents.agents import AgentPlace
from coder.coderd.store.templates import templates as template_store
from coder.coderd.store.templates.templates import TemplateRow
from coder.coderd.store.workspaces import workspaces as workspace_store
from coder.coderd.store.workspaces.workspace_search import WorkspaceReaders
from coder.coderd.store.workspaces.workspaces import WorkspaceRow, WorkspaceView
from coder.domain.access.policy import NIL, Resource, Subject, allowed_organizations, decide, scope_allows
from coder.domain.workspaces.workspaces import WORKSPACE_ROLES

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_TEMPLATE_ROLES = {"use": frozenset({"read", "use"}), "admin": frozenset({"*"})}
_NOTHING: frozenset[str] = frozenset()
_LOOKING = frozenset({"read"})


def workspace_resource(row: WorkspaceRow, *, dormant: bool | None = None) -> Resource:
    """What the policy is asked about. A dormant workspace is a kind of its own that cannot be used."""
    sleeps = row.dormant_at is not None if dormant is None else dormant
    # Sharing ends with the workspace. Its lists are kept, as everything of it is, and give nobody anything.
    return _resource(row.id, row, sleeps, is_shared=not row.deleted)


def agent_resource(place: AgentPlace) -> Resource:
    """An agent is as reachable as its workspace, which lives: there is no place in one that is deleted."""
    return _resource(place.workspace_id, place, place.dormant_at is not None)


def _resource(
    workspace_id: UUID, row: WorkspaceRow | AgentPlace, is_dormant: bool, *, is_shared: bool = True
) -> Resource:
    return Resource(
        "workspace_dormant" if is_dormant else "workspace",
        id=str(workspace_id),
        owner_id=row.owner_id,
        organization_id=row.organization_id,
        user_acl=_actions(row.user_acl, is_dormant) if is_shared else {},
        group_acl=_actions(row.group_acl, is_dormant) if is_shared else {},
    )


def template_resource(row: TemplateRow) -> Resource:
    """What the policy is asked about. As of workspaces, sharing ends with the template: nobody could take it back any
    more, and its versions stay."""
    return Resource(
        "template",
        id=str(row.id),
        organization_id=row.organization_id,
        user_acl={} if row.deleted else _template_actions(row.user_acl),
        group_acl={} if row.deleted else _template_actions(row.group_acl),
    )


def _template_actions(acl: dict[str, str]) -> dict[str, frozenset[str]]:
    return {key: _TEMPLATE_ROLES.get(role, _NOTHING) for key, role in acl.items()}


async def load_template(ctx: Context, subject: Subject, template_id: UUID, action: str = "read") -> TemplateRow:
    """The row, once the caller may do `action` to it. Raises NotFound (deleted ones, too), Forbidden."""
    return _required_template(subject, await ctx.db.read(template_store.get_template, template_id), action)


async def lock_template(tx: Tx, subject: Subject, template_id: UUID, action: str = "update") -> TemplateRow:
    """The template as it is now, held until the transaction ends. Refusals as of `load_template`.

    A template says itself who may change it. What was allowed before its list was changed would undo the change:
    whoever is shut out would let himself in again.
    """
    return _required_template(subject, await template_store.get_template(tx, template_id, lock=True), action)


async def hold_template_of(tx: Tx, workspace_id: UUID) -> TemplateRow:
    """The template of a workspace, for what its list allows or forbids there; it stays so until the transaction ends.
    Before the workspace is locked: whoever changes a template goes on to its workspaces. Raises NotFound."""
    seen = await workspace_store.get_workspace(tx, workspace_id)
    template = await template_store.get_template(tx, seen.template_id, hold=True) if seen is not None else None
    if template is None:
        raise NotFound
    return template


def _required_template(subject: Subject, row: TemplateRow | None, action: str) -> TemplateRow:
    if row is None or row.deleted:
        raise NotFound
    require(subject, action, template_resource(row))
    return row


def readers(subject: Subject, *, dormant: bool = False) -> WorkspaceReaders:
    """The filter of a list: whose workspaces `subject` may read, of those that sleep or of the others. The policy is
    asked about each organization, with an object of the caller's and with one that is shared: so a list shows what can
    be opened."""
    kind = "workspace_dormant" if dormant else "workspace"
    if not scope_allows(subject, "read", kind):
        return WorkspaceReaders(everything=False, organization_ids=[], user_id=NIL, group_ids=[])  # reads nobody's
    organizations = allowed_organizations(subject, "read", kind)
    return WorkspaceReaders(
        everything=organizations is None,
        organization_ids=sorted(organizations or ()),
        user_id=subject.user_id,
        group_ids=sorted({*subject.group_ids, *subject.organization_roles}),
        member_of=readable_in(subject, kind, user_acl={str(subject.user_id): _LOOKING}),
        own_in=readable_in(subject, kind, owner_id=subject.user_id),
    )


def readable_in(subject: Subject, kind: str, **what: Any) -> list[UUID]:
    """Organizations where the caller may read such objects. Lists ask with one of the caller's own."""
    found = sorted(subject.organization_roles)
    return [one for one in found if decide(subject, "read", Resource(kind, organization_id=one, **what))]


async def load_workspace(ctx: Context, subject: Subject, workspace_id: UUID, action: str = "read") -> WorkspaceView:
    """The workspace, deleted ones too. Raises NotFound when it may not be read, Forbidden when only not changed."""
    return _required(subject, await ctx.db.read(workspace_store.get_view, workspace_id), action)


async def lock_workspace(tx: Tx, subject: Subject, workspace_id: UUID, action: str = "update") -> WorkspaceView:
    """The workspace as it is now, held until the transaction ends. Refusals as of `load_workspace`.

    Whoever asked before the transaction began asked about another row: a claim gives a prebuilt workspace to somebody
    else, and what its administrators may do ends with that.
    """
    await workspace_store.get_workspace(tx, workspace_id, lock=True)
    return _required(subject, await workspace_store.get_view(tx, workspace_id), action)


def _required(subject: Subject, view: WorkspaceView | None, action: str) -> WorkspaceView:
    if view is None:
        raise NotFound
    require(subject, "read", workspace_resource(view.workspace))
    if action != "read":
        require(subject, action, workspace_resource(view.workspace))
    return view


def _actions(acl: dict[str, str], is_dormant: bool) -> dict[str, frozenset[str]]:
    """What a share allows; of a workspace that is put aside, no more than looking at it."""
    allowed = {key: WORKSPACE_ROLES.get(role, _NOTHING) for key, role in acl.items()}
    return {key: actions & _LOOKING for key, actions in allowed.items()} if is_dormant else allowed
