"""Bodies of requests that build workspaces, validated and turned into a `BuildRequest`."""

from __future__ import annotations

import base64
from typing import cast
from uuid import UUID

from msgspec import UnsetType

from coder.api.base.enums import WorkspaceTransition
from coder.api.base.refusals import (
    Invalid,
    InvalidFields,
)
from coder.api.templates.parameters import WorkspaceBuildParameter
from coder.api.workspaces.build_requests import CreateWorkspaceBuildRequest, UpdateWorkspaceBuildStateRequest
from coder.coderd.services.workspaces.builds.build_requests import BuildRequest
from coder.domain.access.policy import Subject

MAX_VALUES = 1 << 20
"""Our own limit: characters of all parameter values of a request together. The body may be larger because of the state;
a rendering could not return more values."""


def read_request(subject: Subject, body: CreateWorkspaceBuildRequest) -> BuildRequest:
    """Convert a validated body to a build request. Raises InvalidFields, Invalid."""
    state = read_state(body)
    if body.orphan is True:
        if body.transition != "delete":
            raise Invalid("Orphan is only permitted when deleting a workspace.")
        if state:
            raise Invalid("ProvisionerState cannot be set alongside Orphan since state intent is unclear.")
    return BuildRequest(
        transition=cast("WorkspaceTransition", body.transition),
        initiator_id=subject.user_id,
        version_id=optional_id(body.template_version_id),
        parameters=parameter_values(body.rich_parameter_values),
        preset_id=optional_id(body.template_version_preset_id),
        state=state or None,
        orphan=body.orphan is True,
        log_level=body.log_level or "",
        reason=body.reason or "initiator",
    )


def optional_id(value: UUID | UnsetType | None) -> UUID | None:
    """Return an optional id of a request; the nil UUID means no id."""
    return value if isinstance(value, UUID) and value.int else None


def parameter_values(values: list[WorkspaceBuildParameter] | UnsetType | None) -> dict[str, str]:
    """Return the parameter values of a request; the last value of a name wins. Raises InvalidFields, Invalid."""
    parameters = {item.name: item.value for item in values or ()}
    if sum(len(name) + len(value) for name, value in parameters.items()) > MAX_VALUES:
        raise Invalid(
            "The parameter values are too large.", f"All values together may have at most {MAX_VALUES >> 20} MiB."
        )
    invalid = [name for name, value in parameters.items() if "\x00" in name + value]
    if invalid:
        raise InvalidFields(*((name.replace("\x00", ""), "must not contain NUL") for name in invalid))
    return parameters


def read_state(body: CreateWorkspaceBuildRequest | UpdateWorkspaceBuildStateRequest) -> bytes:
    """Decode the Terraform state of a validated body."""
    return base64.b64decode(body.state, validate=True) if body.state else b""
