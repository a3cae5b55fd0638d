"""Dynamic parameters: a version's form for given values, and the values that a build may have.

The rendering itself is `domain/rendering`, pure and in the sandbox (`foundation/sandbox.py`): an expensive template
delays its user, not the server. Files come from `template_files.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from coder.api.base.refusals import Invalid, TooEarly
from coder.base.json_types import JsonObject as Json
from coder.coderd.services.access.authorization import knows_user
from coder.coderd.services.foundation.sandbox import Documents, SandboxEvaluationError
from coder.coderd.services.templates.template_files import stored_template
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.templates import template_versions as store
from coder.coderd.store.workspaces import build_owner as owner_store
from coder.coderd.store.workspaces.build_owner import OwnerFacts
from coder.domain.access.policy import Subject
from coder.domain.rendering.module_scope import RenderRequest
from coder.domain.rendering.parameters import diagnostic
from coder.domain.rendering.static import render_static

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.services.templates.versions.loaded_versions import LoadedVersion
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.provisioning.jobs import JobRow
    from coder.coderd.store.templates.template_versions import ParameterRow, VariableRow, VersionRow


async def render_in_sandbox(
    ctx: Context, call: str, request: RenderRequest, documents: Documents, caller: UUID, **arguments: Any
) -> Any:
    """Return the result of a call of `sandbox_worker.py`. Raises SandboxEvaluationError."""
    values = {"inputs": request.inputs, "owner": request.owner, "variables": request.variables, **arguments}
    sandbox = ctx.services.api.sandbox
    return await sandbox.call(call, values, documents, caller=str(caller))


@dataclass(frozen=True, slots=True)
class VersionFiles:
    """Inputs of a version's rendering; `files` is None when the version cannot be rendered."""

    organization_id: UUID
    files: Documents | None
    variables: Mapping[str, str]
    recorded: tuple[ParameterRow, ...]


async def load_version_files(ctx: Context, version: VersionRow, job: JobRow) -> VersionFiles:
    """Load the inputs of a version's rendering. Raises TooEarly while the import runs."""
    if job.completed_at is None:
        raise TooEarly("Template version job has not finished")
    facts = await ctx.db.read(_read_facts, version.id)
    files = None
    if facts.has_terraform:
        files = stored_template(ctx, job.file_id, facts.modules_id)
    return VersionFiles(version.organization_id, files, stored_values(facts.variables), tuple(facts.parameters))


@dataclass(frozen=True, slots=True)
class _Facts:
    has_terraform: bool
    modules_id: UUID | None
    variables: list[VariableRow]
    parameters: list[ParameterRow]


async def _read_facts(tx: Tx, version_id: UUID) -> _Facts:
    has_terraform, modules_id = await store.get_terraform(tx, version_id)
    variables = await store.list_variables(tx, version_id)
    return _Facts(has_terraform, modules_id, variables, await store.list_parameters(tx, version_id))


def stored_values(rows: list[VariableRow]) -> dict[str, str]:
    """Return the values of a version's variables; empty ones count as unset, as upstream."""
    values = {row.name: row.value or row.default_value for row in rows}
    return {name: value for name, value in values.items() if value}


def owner_values(user_id: UUID, facts: OwnerFacts) -> dict[str, Any]:
    """Return `data.coder_workspace_owner` as templates see it."""
    return {
        "id": str(user_id),
        "name": facts.username,
        "full_name": facts.name,
        "email": facts.email,
        "ssh_public_key": facts.ssh_public_key,
        "groups": list(facts.groups),
        "login_type": facts.login_type,
        "rbac_roles": [{"name": name, "org_id": organization} for name, organization in facts.roles],
    }


async def read_owner(ctx: Context, subject: Subject, organization_id: UUID, user_id: UUID) -> dict[str, Any] | None:
    """Return an owner's data for a template of the organization; None for users that the caller may not see."""
    return await ctx.db.read(_read_owner, subject, organization_id, user_id)


async def _read_owner(tx: Tx, subject: Subject, organization_id: UUID, user_id: UUID) -> dict[str, Any] | None:
    user = await key_store.find_user_with_roles(tx, user_id)
    if user is None or user.deleted:
        return None
    # Members of an organization see each other; a form reveals no more than that (recorded).
    if not knows_user(subject, user_id, {organization_id} & user.organization_roles.keys()):
        return None
    facts = await owner_store.get_owner_facts(tx, user_id, organization_id)
    return owner_values(user_id, facts) if facts is not None else None


_MAX_OWNERS = 8
"""Owners cached by a form. A user tries a few; a program might try all ids."""


class ParameterForm:
    """A version's form for one caller, with any owner and any values."""

    def __init__(self, ctx: Context, subject: Subject, version: VersionFiles) -> None:
        self._ctx = ctx
        self._subject = subject
        self._version = version
        self._owners: dict[UUID, dict[str, Any] | None] = {}

    async def answer(self, number: int, owner_id: UUID, inputs: Mapping[str, str]) -> Json:
        """Return a message of the socket. Never raises: diagnostics in the message describe problems."""
        version = self._version
        if version.files is None:
            return {"id": number, **render_static(version.recorded, inputs)}
        owner = await self._owner(owner_id)
        if owner is None:
            return {"id": number, "diagnostics": [_NO_OWNER], "parameters": None}
        request = RenderRequest(inputs, owner, version.variables)
        caller = self._subject.user_id
        try:
            response: Json = await render_in_sandbox(self._ctx, "form", request, version.files, caller, number=number)
        except SandboxEvaluationError as error:
            problem = diagnostic(error.message, error.hint, error.code)
            return {"id": number, "diagnostics": [problem], "parameters": None}
        return response

    async def _owner(self, owner_id: UUID) -> dict[str, Any] | None:
        if owner_id not in self._owners:
            owner = await read_owner(self._ctx, self._subject, self._version.organization_id, owner_id)
            if len(self._owners) >= _MAX_OWNERS:
                self._owners.clear()
            self._owners[owner_id] = owner
        return self._owners[owner_id]


_NO_OWNER = diagnostic(
    "Failed to fetch workspace owner", "Please check your permissions or the user may not exist.", "owner_not_found"
)


async def open_form(ctx: Context, subject: Subject, loaded: LoadedVersion) -> ParameterForm:
    """Open a version's form. Raises TooEarly while its import runs."""
    return ParameterForm(ctx, subject, await load_version_files(ctx, loaded.version, loaded.job))


def refusal_of(refusal: Mapping[str, Any] | None) -> Invalid | None:
    """Return a rendering's refusal as an exception of the API; None without one."""
    if refusal is None:
        return None
    body = refusal["response"]
    return Invalid(body["message"], validations=[(item["field"], item["detail"]) for item in body["validations"]])
