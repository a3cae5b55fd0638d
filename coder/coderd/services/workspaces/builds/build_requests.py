"""A requested build, and the deployment's rules for it. `new_builds.py` queues it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Invalid
from coder.coderd.services.login.required_logins import MissingLogins

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


class StaleValuesError(Exception):
    """Values were rendered for a version or after a build that is no longer the one in question."""


class FormNeededError(Exception):
    """A stop or delete build has values of parameters the import never saw: only the form tells which are ephemeral."""


@dataclass(frozen=True, slots=True)
class PreparedBuild:
    """What rendering the template gave for a start build, and what it was rendered from."""

    version_id: UUID
    last_build_id: UUID | None
    values: Mapping[str, str]
    tags: Mapping[str, str]
    refusal: Invalid | None
    "Why there can be no such build; said after everything that is more basic was found in order."


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What is asked for."""

    transition: str
    initiator_id: UUID
    version_id: UUID | None = None
    "None keeps the last build's version; the first build takes the template's active one."
    given: Mapping[str, str] = field(default_factory=dict)
    preset_id: UUID | None = None
    state: bytes | None = None
    "Terraform state to use instead of the last build's."
    orphan: bool = False
    "Forget the resources instead of destroying them."
    log_level: str = ""
    reason: str = "initiator"
    priority: int = 0
    "0 somebody waits for it, 1 made ahead."
    prepared: PreparedBuild | None = None
    "None: values follow from what the version's import recorded."
    ephemeral: frozenset[str] | None = None
    "Of a stop or delete build: what the form says counts for one build only. None: nobody has asked the form yet."
    logins: MissingLogins | None = None
    "None: the version needs no external login, or nothing is started."


@dataclass(frozen=True, slots=True)
class BuildRules:
    """Settings of the deployment that builds depend on."""

    terraform_debug_mode: bool = False
    strict_tags: bool = False
    "Only counted by: the queue asks the setting itself."


def rules_of(ctx: Context) -> BuildRules:
    return BuildRules(ctx.config.enable_terraform_debug_mode, ctx.config.provisioner_strict_tags)
