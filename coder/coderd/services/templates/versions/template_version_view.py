"""Template versions as JSON, converted from rows without the database."""

from __future__ import annotations

from typing import cast
from uuid import UUID

from msgspec import UNSET

from coder.api.people.user_names import MinimalUser
from coder.api.provisioning.jobs import MatchedProvisioners
from coder.api.templates.parameters import (
    Preset,
    PresetParameter,
    TemplateVersionParameter,
    TemplateVersionParameterOption,
    ValidationMonotonicOrder,
)
from coder.api.templates.template_versions import TemplateVersion, TemplateVersionVariable
from coder.coderd.services.provisioning.jobs import present_job
from coder.coderd.store.provisioning.jobs import JobRow
from coder.coderd.store.templates.template_versions import ParameterRow, PresetRow, VariableRow, VersionView
from coder.domain.foundation.markdown import plain_text
from coder.domain.provisioning.queue import NO_POSITION, QueuePosition

_NIL = UUID(int=0)
_REDACTED = "*redacted*"


def present_version(
    view: VersionView, job: JobRow, position: QueuePosition = NO_POSITION, *, matched: MatchedProvisioners | None = None
) -> TemplateVersion:
    """Return a version as JSON; `matched` is set while the import is pending."""
    version = view.version
    return TemplateVersion(
        id=version.id,
        template_id=version.template_id or _NIL,
        organization_id=version.organization_id,
        created_at=version.created_at,
        updated_at=version.updated_at,
        name=version.name,
        message=version.message,
        job=present_job(job, position),
        readme=version.readme,
        created_by=MinimalUser(
            id=version.created_by,
            username=view.username,
            name=view.name or UNSET,
            avatar_url=view.avatar_url or UNSET,
        ),
        archived=version.archived,
        has_external_agent=version.has_external_agent,
        matched_provisioners=matched if matched is not None else UNSET,
    )


def present_parameter(row: ParameterRow) -> TemplateVersionParameter:
    return TemplateVersionParameter(
        name=row.name,
        display_name=row.display_name or UNSET,
        description=row.description,
        description_plaintext=plain_text(row.description),
        type=row.type,
        form_type=row.form_type,
        mutable=row.mutable,
        default_value=row.default_value,
        icon=row.icon,
        options=[TemplateVersionParameterOption(**option) for option in row.options],
        validation_error=row.validation_error or UNSET,
        validation_regex=row.validation_regex or UNSET,
        validation_min=row.validation_min if row.validation_min is not None else UNSET,
        validation_max=row.validation_max if row.validation_max is not None else UNSET,
        validation_monotonic=cast("ValidationMonotonicOrder", row.validation_monotonic)
        if row.validation_monotonic
        else UNSET,
        required=row.required,
        ephemeral=row.ephemeral,
    )


def present_variable(row: VariableRow) -> TemplateVersionVariable:
    hidden = row.sensitive
    return TemplateVersionVariable(
        name=row.name,
        description=row.description,
        type=row.type,
        value=_REDACTED if hidden else row.value,
        default_value=_REDACTED if hidden else row.default_value,
        required=row.required,
        sensitive=row.sensitive,
    )


def present_preset(row: PresetRow) -> Preset:
    parameters = sorted(row.parameters, key=lambda item: item["name"])
    return Preset(
        ID=str(row.id),
        Name=row.name,
        Parameters=[PresetParameter(Name=item["name"], Value=item["value"]) for item in parameters],
        Default=row.is_default,
        DesiredPrebuildInstances=row.desired_instances,
        Description=row.description,
        Icon=row.icon,
    )
