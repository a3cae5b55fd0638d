"""Bodies of requests for tasks, validated: input, names, template version."""

from __future__ import annotations

import secrets
import string
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Invalid, NotFound
from coder.api.tasks.tasks import CreateTaskRequest
from coder.base.ids import new_uuid
from coder.coderd.services.access.authorization import may
from coder.coderd.services.access.workspace_access import (
    template_resource,
)
from coder.coderd.store.tasks.tasks import TaskRow
from coder.coderd.store.templates import system_template_versions, system_templates
from coder.domain.access.policy import Subject
from coder.domain.tasks import tasks as rules

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_BAD_NAME = "Unable to create a Task with the provided name."
_LETTERS = string.ascii_lowercase + string.digits


def missing_input() -> Invalid:
    """Return the refusal of an empty prompt."""
    return Invalid("Task input is required.")


async def check_version(tx: Tx, subject: Subject, version_id: UUID) -> UUID:
    """Return the organization of a template version that supports tasks. Raises NotFound, Invalid."""
    version = await system_template_versions.get_version(tx, version_id)
    template = await system_templates.get_template(tx, version.template_id) if version and version.template_id else None
    if version is None or template is None or not may(subject, "read", template_resource(template)):
        raise NotFound
    if not version.has_ai_task:
        raise Invalid('Template does not have a valid "coder_ai_task" resource.')
    return template.organization_id


def new_task_row(owner_id: UUID, organization_id: UUID, body: CreateTaskRequest, now: datetime) -> TaskRow:
    """Return the row of a new task, without workspace. Raises Invalid for names and prompts."""
    for field, text in (("input", body.input), ("display_name", body.display_name or "")):
        if "\x00" in text:
            raise Invalid("Validation failed.", validations=[(field, "must not contain NUL")])
    display_name = (body.display_name or "").strip()
    reason = rules.explain_name(body.name) if body.name else ""
    if reason:
        raise Invalid(_BAD_NAME, reason)
    reason = rules.explain_display_name(display_name)
    if reason:
        raise Invalid("Unable to create a Task with the provided display name.", reason)
    suffix = "".join(secrets.choice(_LETTERS) for _ in range(4))
    return TaskRow(
        id=new_uuid(),
        organization_id=organization_id,
        owner_id=owner_id,
        name=body.name or rules.name_from_prompt(display_name or body.input, suffix),
        display_name=display_name or rules.display_name_from_prompt(body.input),
        workspace_id=None,
        template_version_id=body.template_version_id,
        prompt=body.input,
        created_at=now,
    )
