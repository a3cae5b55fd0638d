"""A workspace build as a provisioner daemon gets it: parameters, state, metadata, tokens.

Some builds get neither a token nor the private key of the owner (`services/access/owner_identity.py`): those whose
owner left the organization, or never belonged to it. The result of the build is handled by `build_results.py`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Invalid
from coder.coderd.services.access import owner_identity
from coder.coderd.services.login import provider_tokens
from coder.coderd.services.people import git_ssh_keys
from coder.coderd.services.templates.imports.import_messages import variable_values
from coder.coderd.services.workspaces.builds.build_consent import end_with_consent, hold_consent
from coder.coderd.services.workspaces.builds.build_metadata import build_metadata, set_prebuild_stage
from coder.coderd.services.workspaces.builds.build_session_token import create_session_token, revoke_session_token
from coder.coderd.store.provisioning.jobs import JobRow
from coder.coderd.store.templates import system_template_versions
from coder.coderd.store.workspaces import build_owner as owner_store
from coder.coderd.store.workspaces import builds as build_store
from coder.coderd.store.workspaces import system_builds, system_workspaces
from coder.coderd.store.workspaces.builds import BuildRow
from coder.rpc.proto import provisioner_pb2, provisionerd_pb2

if TYPE_CHECKING:
    from coder.coderd.config.settings import ServerConfig
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


async def describe_build(ctx: Context, job: JobRow) -> provisionerd_pb2.AcquiredJob.WorkspaceBuild:
    """Return the message that describes the job's build. Raises Invalid when the build or something it needs is
    gone."""
    build_message, owner_id, providers = await ctx.db.run(_describe, job, ctx.access_url, ctx.config, ctx.clock.now())
    if owner_id is None:
        return build_message
    key = build_message.metadata.workspace_owner_ssh_private_key
    build_message.metadata.workspace_owner_ssh_private_key = git_ssh_keys.opened(ctx, key)
    build_message.metadata.workspace_owner_oidc_access_token = await provider_tokens.oidc_token(ctx, owner_id)
    # Renewing tokens calls their providers: no database transaction may wait for that.
    for provider, token in await provider_tokens.external_tokens(ctx, owner_id, providers):
        build_message.external_auth_providers.add(id=provider, access_token=token.reveal())
    return build_message


async def _describe(
    tx: Tx, job: JobRow, access_url: str, config: ServerConfig, now: datetime
) -> tuple[provisionerd_pb2.AcquiredJob.WorkspaceBuild, UUID | None, list[str]]:
    """Return the build's message, the owner whose tokens it gets (None: no owner's), and the ids of the external auth
    providers the template requires."""
    build = await system_builds.get_build_by_job(tx, job.id)
    workspace = await system_workspaces.get_workspace(tx, build.workspace_id) if build is not None else None
    if build is None or workspace is None:
        raise Invalid("get workspace build: not found")
    owner = await owner_store.get_owner_facts(tx, workspace.owner_id, workspace.organization_id)
    if owner is None:
        raise Invalid("get owner: not found")
    previous = await system_builds.get_previous_build(tx, build)
    target = owner_identity.IdentityTarget(workspace.owner_id, workspace.organization_id, build.initiator_id)
    is_delivered = await owner_identity.is_delivered(tx, config, target)
    if not is_delivered:
        owner = replace(owner, ssh_private_key="")
    metadata = await build_metadata(tx, build, workspace, owner, access_url)
    await set_prebuild_stage(tx, metadata, build, previous, workspace)
    caused_by = await hold_consent(tx, job, workspace.owner_id, now)
    await revoke_session_token(tx, workspace)
    if is_delivered and not caused_by.has_ended:
        token = await create_session_token(tx, build, workspace, owner, config, now)
        await end_with_consent(tx, token, caused_by.consent)
        metadata.workspace_owner_session_token = token
    version = await system_template_versions.get_version(tx, build.template_version_id)
    providers = [str(item["id"]) for item in version.external_auth_providers] if version is not None else []
    build_message = provisionerd_pb2.AcquiredJob.WorkspaceBuild(
        workspace_build_id=str(build.id),
        workspace_name=workspace.name,
        rich_parameter_values=await _parameters(tx, build),
        previous_parameter_values=await _parameters(tx, previous) if previous is not None else [],
        variable_values=await variable_values(tx, build.template_version_id),
        metadata=metadata,
        state=await system_builds.get_state(tx, build.id),
        log_level=build.log_level,
    )
    return build_message, workspace.owner_id if is_delivered else None, providers


async def _parameters(tx: Tx, build: BuildRow) -> list[provisioner_pb2.RichParameterValue]:
    values = await build_store.list_parameters(tx, build.id)
    return [provisioner_pb2.RichParameterValue(name=name, value=value) for name, value in values.items()]
