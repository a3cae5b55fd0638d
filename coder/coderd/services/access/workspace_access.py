"""Rights to workspaces: rows as resources of the policy, and loading with the check included.

All code that reads a workspace uses `load_workspace`, all code that changes one uses `lock_workspace`, so that no row
is used unchecked. Changes of a template use `lock_template`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import NotFound
from coder.coderd.services.access.authorization import require
from coder.coderd.store.agents.agents import CurrentAgent
from coder.coderd.store.templates import system_templates
from coder.coderd.store.templates.templates import TemplateRow
from coder.coderd.store.workspaces import system_workspaces
from coder.coderd.store.workspaces.workspace_search import WorkspaceReaders
from coder.coderd.store.workspaces.workspaces import WorkspaceRow, WorkspaceView
from coder.domain.access.policy import NIL, Class, Object, Subject, Target, allowed_organizations, decide, scope_allows
from coder.domain.workspaces.workspaces import WORKSPACE_ROLES

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_TEMPLATE_ROLES = {"use": frozenset({"read", "use"}), "admin": frozenset({"*"})}
_NO_ACTIONS: frozenset[str] = frozenset()
_READ_ONLY = frozenset({"read"})


def workspace_resource(row: WorkspaceRow, *, dormant: bool | None = None) -> Target:
    """Return the policy's resource of a workspace. A dormant workspace is another kind, which cannot be used."""
    sleeps = row.dormant_at is not None if dormant is None else dormant
    # Sharing ends with the workspace. A deleted workspace keeps its access lists, but they give no access.
    return _resource(row.id, row, sleeps, is_shared=not row.deleted)


def agent_resource(agent: CurrentAgent) -> Target:
    """Return the policy's resource of an agent, which is that of its workspace. A deleted workspace has no agents."""
    return _resource(agent.workspace_id, agent, agent.dormant_at is not None)


def _resource(
    workspace_id: UUID, row: WorkspaceRow | CurrentAgent, is_dormant: bool, *, is_shared: bool = True
) -> Target:
    return Object(
        "workspace_dormant" if is_dormant else "workspace",
        str(workspace_id),
        owner_id=row.owner_id,
        organization_id=row.organization_id,
        user_acl=_actions(row.user_acl, is_dormant) if is_shared else {},
        group_acl=_actions(row.group_acl, is_dormant) if is_shared else {},
    )


def reveals_values(subject: Subject, row: WorkspaceRow | CurrentAgent) -> bool:
    """Return whether the subject may read values inside a workspace, such as environment variables of its agents.

    Templates put tokens there, and a shell shows them: so it is the right to connect, also while the workspace is
    dormant.
    """
    workspace_id = row.workspace_id if isinstance(row, CurrentAgent) else row.id
    is_shared = isinstance(row, CurrentAgent) or not row.deleted
    return decide(subject, "ssh", _resource(workspace_id, row, False, is_shared=is_shared))


def template_resource(row: TemplateRow) -> Target:
    """Return the policy's resource of a template.

    As with workspaces, sharing ends with the template: afterwards nothing could revoke it, and the versions stay.
    """
    return Object(
        "template",
        str(row.id),
        organization_id=row.organization_id,
        user_acl={} if row.deleted else _template_actions(row.user_acl),
        group_acl={} if row.deleted else _template_actions(row.group_acl),
    )


def _template_actions(acl: Mapping[str, str]) -> dict[str, frozenset[str]]:
    return {key: _TEMPLATE_ROLES.get(role, _NO_ACTIONS) for key, role in acl.items()}


async def load_template(ctx: Context, subject: Subject, template_id: UUID, action: str = "read") -> TemplateRow:
    """Load a template on which the caller may do `action`. Raises NotFound (also for deleted ones), Forbidden."""
    return _required_template(subject, await ctx.db.read(system_templates.get_template, template_id), action)


async def lock_template(tx: Tx, subject: Subject, template_id: UUID, action: str = "update") -> TemplateRow:
    """Read a template and lock it until the transaction ends. Raises as `load_template` does.

    A template's own access list says who may change it. A check before the lock would let a caller who has just been
    removed from the list add themselves again.
    """
    return _required_template(subject, await system_templates.get_template(tx, template_id, lock=True), action)


async def hold_template_of(tx: Tx, workspace_id: UUID) -> TemplateRow:
    """Read the template of a workspace and keep its access list unchanged until the transaction ends.

    Call it before locking the workspace: a change of a template goes on to lock its workspaces. Raises NotFound.
    """
    row = await system_workspaces.get_workspace(tx, workspace_id)
    template = await system_templates.get_template(tx, row.template_id, hold=True) if row is not None else None
    if template is None:
        raise NotFound
    return template


def _required_template(subject: Subject, row: TemplateRow | None, action: str) -> TemplateRow:
    if row is None or row.deleted:
        raise NotFound
    require(subject, action, template_resource(row))
    return row


def readers(subject: Subject, *, dormant: bool = False) -> WorkspaceReaders:
    """Return the filter of a list: the workspaces `subject` may read, dormant or others.

    The policy is asked about each organization, with an object of the caller and with a shared one, so that a list
    shows exactly the objects that can be opened.
    """
    kind = "workspace_dormant" if dormant else "workspace"
    if not scope_allows(subject, "read", kind):
        # matches no workspace
        return WorkspaceReaders(everything=False, organization_ids=[], user_id=NIL, group_ids=[])
    organizations = allowed_organizations(subject, "read", kind, narrowed=True)
    return WorkspaceReaders(
        everything=organizations is None,
        organization_ids=sorted(organizations or ()),
        user_id=subject.user_id,
        group_ids=sorted({*subject.group_ids, *subject.organization_roles}),
        member_of=readable_organizations(subject, kind, user_acl={str(subject.user_id): _READ_ONLY}),
        own_in=readable_organizations(subject, kind, owner_id=subject.user_id),
    )


def readable_organizations(
    subject: Subject,
    kind: str,
    *,
    owner_id: UUID | None = None,
    user_acl: Mapping[str, frozenset[str]] | None = None,
) -> list[UUID]:
    """Return the organizations in which the caller may read such objects, for lists narrowed to `allowed_ids`.

    Lists ask with an object of the caller.
    """
    allowed = sorted(subject.organization_roles)
    return [
        organization_id
        for organization_id in allowed
        if decide(
            subject,
            "read",
            Class(kind, owner_id, organization_id=organization_id, narrowed=True, user_acl=user_acl or {}),
        )
    ]


async def load_workspace(ctx: Context, subject: Subject, workspace_id: UUID, action: str = "read") -> WorkspaceView:
    """Load a workspace, also a deleted one. Raises NotFound without read permission, Forbidden without `action`."""
    return _required(subject, await ctx.db.read(system_workspaces.get_view, workspace_id), action)


async def lock_workspace(tx: Tx, subject: Subject, workspace_id: UUID, action: str = "update") -> WorkspaceView:
    """Read a workspace and lock it until the transaction ends. Raises as `load_workspace` does.

    A check before the transaction may have been about another owner: a claim transfers a prebuilt workspace, which ends
    the rights of its administrators.
    """
    await system_workspaces.get_workspace(tx, workspace_id, lock=True)
    return _required(subject, await system_workspaces.get_view(tx, workspace_id), action)


def _required(subject: Subject, view: WorkspaceView | None, action: str) -> WorkspaceView:
    if view is None:
        raise NotFound
    require(subject, "read", workspace_resource(view.workspace))
    if action != "read":
        require(subject, action, workspace_resource(view.workspace))
    return view


def _actions(acl: Mapping[str, str], is_dormant: bool) -> dict[str, frozenset[str]]:
    """Return the actions that a share allows; on a dormant workspace, only reading."""
    if not acl:
        return {}
    allowed = {key: WORKSPACE_ROLES.get(role, _NO_ACTIONS) for key, role in acl.items()}
    return {key: actions & _READ_ONLY for key, actions in allowed.items()} if is_dormant else allowed
