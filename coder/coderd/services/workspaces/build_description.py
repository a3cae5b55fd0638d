"""A workspace build as a provisioner daemon gets it: parameters, state, and everything Terraform may ask about.

The owner's session token is made here, at the last moment: a fresh one for every start of a person's workspace, none
for stop and delete. A build whose owner has left the organization, or never was in it, gets no token or private key of
theirs (`services/access/owner_identity.py`).
What the end of a build means is `build_results.py`.
"""

from __future__ import annotations

import secrets
import string
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Invalid
from coder.coderd.services.access import owner_identity
from coder.coderd.services.access.authentication import hash_secret
from coder.coderd.services.login import provider_tokens
from coder.coderd.services.people import git_ssh_keys
from coder.coderd.services.templates.imports.import_messages import variable_values
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.provisioning.jobs import JobRow
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.coderd.store.tasks import tasks as task_store
from coder.coderd.store.templates import template_versions as version_store
from coder.coderd.store.templates import templates as template_store
from coder.coderd.store.workspaces import build_owner as owner_store
from coder.coderd.store.workspaces import builds as build_store
from coder.coderd.store.workspaces import workspaces as workspace_store
from coder.coderd.store.workspaces.build_owner import OwnerFacts
from coder.coderd.store.workspaces.builds import BuildRow
from coder.coderd.store.workspaces.workspaces import WorkspaceRow
from coder.rpc.proto import provisioner_pb2, provisionerd_pb2

if TYPE_CHECKING:
    from coder.coderd.config.settings import ServerConfig
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_TRANSITIONS = {
    "start": provisioner_pb2.START,
    "stop": provisioner_pb2.STOP,
    "delete": provisioner_pb2.DESTROY,
}
_NO_TASK = "00000000-0000-0000-0000-000000000000"
_ALPHABET = string.ascii_letters + string.digits


async def describe_build(ctx: Context, job: JobRow) -> provisionerd_pb2.AcquiredJob.WorkspaceBuild:
    """Raises Invalid when the build or something it stands on is gone."""
    work, owner_id, wanted = await ctx.db.run(_describe, job, ctx.access_url, ctx.config, ctx.clock.now())
    if owner_id is None:
        return work
    key = work.metadata.workspace_owner_ssh_private_key
    work.metadata.workspace_owner_ssh_private_key = git_ssh_keys.opened(ctx, key)
    work.metadata.workspace_owner_oidc_access_token = await provider_tokens.oidc_token(ctx, owner_id)
    # Tokens are renewed at their providers: no database transaction may wait for that.
    for provider, token in await provider_tokens.external_tokens(ctx, owner_id, wanted):
        work.external_auth_providers.add(id=provider, access_token=token.reveal())
    return work


async def _describe(
    tx: Tx, job: JobRow, access_url: str, config: ServerConfig, now: datetime
) -> tuple[provisionerd_pb2.AcquiredJob.WorkspaceBuild, UUID | None, list[str]]:
    """Return the work, the owner whose tokens it gets (None: nobody's), and the external providers the template wants
    tokens of."""
    build = await build_store.get_build_by_job(tx, job.id)
    workspace = await workspace_store.get_workspace(tx, build.workspace_id) if build is not None else None
    if build is None or workspace is None:
        raise Invalid("get workspace build: it is gone")
    owner = await owner_store.get_owner_facts(tx, workspace.owner_id, workspace.organization_id)
    if owner is None:
        raise Invalid("get owner: the user is gone")
    previous = await build_store.get_previous_build(tx, build)
    is_delivered = await owner_identity.is_delivered(tx, workspace.owner_id, workspace.organization_id)
    if not is_delivered:
        owner = replace(owner, ssh_private_key="")
    metadata = await _metadata(tx, build, workspace, owner, access_url)
    await _set_stage(tx, metadata, build, previous, workspace)
    await key_store.replace_token(tx, workspace.owner_id, _token_name(workspace))
    if is_delivered:
        metadata.workspace_owner_session_token = await _session_token(tx, build, workspace, owner, config, now)
    version = await version_store.get_version(tx, build.template_version_id)
    wanted = [str(item["id"]) for item in version.external_auth_providers] if version is not None else []
    work = provisionerd_pb2.AcquiredJob.WorkspaceBuild(
        workspace_build_id=str(build.id),
        workspace_name=workspace.name,
        rich_parameter_values=await _parameters(tx, build),
        previous_parameter_values=await _parameters(tx, previous) if previous is not None else [],
        variable_values=await variable_values(tx, build.template_version_id),
        metadata=metadata,
        state=await build_store.get_state(tx, build.id),
        log_level=build.log_level,
    )
    return work, workspace.owner_id if is_delivered else None, wanted


async def _parameters(tx: Tx, build: BuildRow) -> list[provisioner_pb2.RichParameterValue]:
    values = await build_store.list_parameters(tx, build.id)
    return [provisioner_pb2.RichParameterValue(name=name, value=value) for name, value in values.items()]


async def _metadata(
    tx: Tx, build: BuildRow, workspace: WorkspaceRow, owner: OwnerFacts, access_url: str
) -> provisioner_pb2.Metadata:
    template = await template_store.get_template(tx, workspace.template_id)
    version = await version_store.get_version(tx, build.template_version_id)
    if template is None or version is None:
        raise Invalid("get template: it is gone")
    task = await task_store.get_task_of(tx, workspace.id, deleted=True)
    modules = None if template.disable_module_cache else await version_store.get_module_files_id(tx, version.id)
    return provisioner_pb2.Metadata(
        coder_url=access_url,
        workspace_transition=_TRANSITIONS[build.transition],
        workspace_name=workspace.name,
        workspace_owner=owner.username,
        workspace_id=str(workspace.id),
        workspace_owner_id=str(workspace.owner_id),
        workspace_owner_email=owner.email,
        template_name=template.name,
        template_version=version.name,
        template_id=str(template.id),
        workspace_owner_name=owner.name,
        workspace_owner_groups=owner.groups,
        workspace_owner_ssh_public_key=owner.ssh_public_key,
        workspace_owner_ssh_private_key=owner.ssh_private_key,
        workspace_build_id=str(build.id),
        workspace_owner_login_type=owner.login_type,
        workspace_owner_rbac_roles=[
            provisioner_pb2.Role(name=name, org_id=organization) for name, organization in owner.roles
        ],
        task_id=str(task.id) if task else _NO_TASK,
        task_prompt=task.prompt if task else "",
        template_version_id=str(version.id),
        template_version_modules_file=str(modules) if modules else "",
    )


async def _set_stage(
    tx: Tx, metadata: provisioner_pb2.Metadata, build: BuildRow, previous: BuildRow | None, workspace: WorkspaceRow
) -> None:
    """Whether the build makes a workspace ahead, or gives one to its new owner, whose agents then keep their tokens."""
    if build.transition != "start":
        return
    stages = provisioner_pb2.PrebuiltWorkspaceBuildStage
    if workspace.owner_id == PREBUILDS_USER_ID:
        metadata.prebuilt_workspace_build_stage = stages.CREATE
    elif previous is not None and previous.initiator_id == PREBUILDS_USER_ID:
        metadata.prebuilt_workspace_build_stage = stages.CLAIM
        for detail in await agent_store.list_agents_of_jobs(tx, [previous.job_id]):
            metadata.running_agent_auth_tokens.add(agent_id=str(detail.agent.id), token=str(detail.agent.auth_token))


def _token_name(workspace: WorkspaceRow) -> str:
    return f"{workspace.owner_id}_{workspace.id}_session_token"


async def _session_token(
    tx: Tx, build: BuildRow, workspace: WorkspaceRow, owner: OwnerFacts, config: ServerConfig, now: datetime
) -> str:
    if build.transition != "start" or workspace.owner_id == PREBUILDS_USER_ID:
        # The system user's key would open every workspace that waits, of whatever template and organization, and
        # whoever is given the workspace could read it there.
        return ""
    key_id, secret = _random_text(10), _random_text(22)
    await key_store.insert_key(
        tx,
        key_store.KeyRow(
            id=key_id,
            user_id=workspace.owner_id,
            hashed_secret=hash_secret(secret),
            last_used=now,
            expires_at=now + config.max_token_lifetime,
            created_at=now,
            updated_at=now,
            login_type=owner.login_type,
            lifetime_seconds=int(config.max_token_lifetime.total_seconds()),
            ip_address="",
            token_name=_token_name(workspace),
            scopes=["coder:all"],
            allow_list=["*:*"],
        ),
    )
    return f"{key_id}-{secret}"


def _random_text(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))
