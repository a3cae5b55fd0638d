"""A requested build, and the deployment's rules for it. `new_builds.py` queues it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.enums import WorkspaceTransition
from coder.api.base.refusals import Invalid
from coder.coderd.services.login.required_logins import MissingLogins

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


class StaleValuesError(Exception):
    """Values were rendered for another version, or before another build."""


class FormNeededError(Exception):
    """A stop or delete build has values of parameters the import did not record: only the form knows the ephemeral
    ones."""


@dataclass(frozen=True, slots=True)
class PreparedBuild:
    """Result of rendering the template for a start build, and the inputs it depends on."""

    version_id: UUID
    last_build_id: UUID | None
    values: Mapping[str, str]
    tags: Mapping[str, str]
    refusal: Invalid | None
    "Reason why the build is impossible; raised after the more basic checks have passed."


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """A requested build."""

    transition: WorkspaceTransition
    initiator_id: UUID
    version_id: UUID | None = None
    "None keeps the last build's version; the first build uses the template's active one."
    parameters: Mapping[str, str] = field(default_factory=dict)
    preset_id: UUID | None = None
    state: bytes | None = None
    "Terraform state to use instead of the last build's."
    orphan: bool = False
    "Whether to forget the resources instead of destroying them."
    log_level: str = ""
    reason: str = "initiator"
    priority: int = 0
    "0 if a user waits for the build, 1 if it is created ahead."
    prepared: PreparedBuild | None = None
    "None: the values follow from what the version's import recorded."
    ephemeral: frozenset[str] | None = None
    """For stop and delete builds: names of the parameters that the form calls ephemeral. None: the form was not
    rendered yet."""
    logins: MissingLogins | None = None
    "None: the version requires no external login, or nothing is started."


@dataclass(frozen=True, slots=True)
class BuildRules:
    """Deployment settings that builds depend on."""

    terraform_debug_mode: bool = False
    strict_tags: bool = False
    "Used for counting matching daemons only: the queue reads the setting itself."


def rules_of(ctx: Context) -> BuildRules:
    """Return the rules that the server was configured with."""
    return BuildRules(ctx.config.enable_terraform_debug_mode, ctx.config.provisioner_strict_tags)
