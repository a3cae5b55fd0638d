"""Types of the coder/coder provider by name."""

from __future__ import annotations

from coder.provisionerd.terraform.provider.data import parameter, preset, workspace
from coder.provisionerd.terraform.provider.kinds import DataKind, ResourceKind
from coder.provisionerd.terraform.provider.resources import agent, app, metadata, scripts, task
from coder.provisionerd.terraform.provider.schema import STRING, Attribute, Schema

PROVIDER_ADDRESS = "registry.terraform.io/coder/coder"
PROVIDER_VERSION = "2.19.0"
"""Upstream release with the same schema."""

PROVIDER = Schema({"url": Attribute(STRING, description="Access URL of the server.")}, version=0)

RESOURCES: dict[str, ResourceKind] = {
    "coder_agent": agent.agent,
    "coder_agent_instance": agent.agent_instance,
    "coder_ai_task": task.ai_task,
    "coder_app": app.app,
    "coder_devcontainer": scripts.devcontainer,
    "coder_env": scripts.env,
    "coder_external_agent": agent.external_agent,
    "coder_metadata": metadata.metadata,
    "coder_script": scripts.script,
}

DATA_SOURCES: dict[str, DataKind] = {
    "coder_external_auth": workspace.external_auth,
    "coder_parameter": parameter.parameter,
    "coder_provisioner": workspace.provisioner,
    "coder_task": workspace.task,
    "coder_workspace": workspace.workspace,
    "coder_workspace_owner": workspace.workspace_owner,
    "coder_workspace_preset": preset.workspace_preset,
    "coder_workspace_tags": workspace.workspace_tags,
}
