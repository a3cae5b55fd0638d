"""Metadata of a build: everything Terraform may ask about workspace, owner, template and task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coder.api.base.refusals import Invalid
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.coderd.store.tasks import system_tasks
from coder.coderd.store.templates import system_template_versions, system_templates
from coder.coderd.store.templates import template_versions as version_store
from coder.coderd.store.workspaces.build_owner import OwnerFacts
from coder.coderd.store.workspaces.builds import BuildRow
from coder.coderd.store.workspaces.workspaces import WorkspaceRow
from coder.rpc.proto import provisioner_pb2

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_TRANSITIONS = {
    "start": provisioner_pb2.START,
    "stop": provisioner_pb2.STOP,
    "delete": provisioner_pb2.DESTROY,
}
_NO_TASK = "00000000-0000-0000-0000-000000000000"


async def build_metadata(
    tx: Tx, build: BuildRow, workspace: WorkspaceRow, owner: OwnerFacts, access_url: str
) -> provisioner_pb2.Metadata:
    """Return the metadata without prebuild stage and tokens. Raises Invalid."""
    template = await system_templates.get_template(tx, workspace.template_id)
    version = await system_template_versions.get_version(tx, build.template_version_id)
    if template is None or version is None:
        raise Invalid("get template: not found")
    task = await system_tasks.get_task_of(tx, workspace.id, deleted=True)
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


async def set_prebuild_stage(
    tx: Tx, metadata: provisioner_pb2.Metadata, build: BuildRow, previous: BuildRow | None, workspace: WorkspaceRow
) -> None:
    """Mark a build that creates a prebuilt workspace, or one that claims it. After a claim the agents keep their
    tokens."""
    if build.transition != "start":
        return
    stages = provisioner_pb2.PrebuiltWorkspaceBuildStage
    if workspace.owner_id == PREBUILDS_USER_ID:
        metadata.prebuilt_workspace_build_stage = stages.CREATE
    elif previous is not None and previous.initiator_id == PREBUILDS_USER_ID:
        metadata.prebuilt_workspace_build_stage = stages.CLAIM
        for detail in await agent_store.list_agents_of_jobs(tx, [previous.job_id]):
            metadata.running_agent_auth_tokens.add(agent_id=str(detail.agent.id), token=str(detail.agent.auth_token))
