"""Ends of rollouts that a change elsewhere causes: another active version, an archived version, a deleted template."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from coder.coderd.store.templates import rollouts as store
from coder.coderd.store.templates import system_template_versions
from coder.coderd.store.templates.rollouts import RolloutRow
from coder.coderd.store.templates.templates import TemplateRow

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx
    from coder.domain.templates.rollouts import RolloutStatus

PROMOTED = "The version was promoted by hand."
OTHER_PROMOTED = "Another version was promoted by hand."
DELETED = "The template was deleted."
ARCHIVED = "The version was archived."


async def end_void_rollout(tx: Tx, template: TemplateRow, now: datetime) -> RolloutRow | None:
    """Return the template's open rollout. One that no longer has what it began with is ended instead.

    The transaction has locked the template; `template` is its present row.
    """
    rollout = await store.find_open(tx, template.id)
    if rollout is None:
        return None
    ending = await _ending(tx, template, rollout)
    if ending is None:
        return rollout
    status, message = ending
    await store.update_rollout(tx, rollout.id, status=status, message=message, updated_at=now, ended_at=now)
    return None


async def _ending(tx: Tx, template: TemplateRow, rollout: RolloutRow) -> tuple[RolloutStatus, str] | None:
    """Return the status and the message with which the rollout ends; None for one that applies."""
    if template.deleted:
        return "canceled", DELETED
    if template.active_version_id == rollout.template_version_id:
        return "completed", PROMOTED
    if template.active_version_id != rollout.former_version_id:
        return "canceled", OTHER_PROMOTED
    version = await system_template_versions.get_version(tx, rollout.template_version_id)
    return ("canceled", ARCHIVED) if version is None or version.archived else None
