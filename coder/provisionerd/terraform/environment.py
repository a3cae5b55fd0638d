"""CODER_* variables of a job, and the environment that terraform processes inherit. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from coder.provisionerd.terraform.provider.data.parameter import PARAMETER_PREFIX, PREVIOUS_PREFIX, variable_suffix
from coder.provisionerd.terraform.provider.resources.agent import RUNNING_TOKEN_PREFIX
from coder.rpc.proto import provisioner_pb2 as pb

_TRANSITIONS = {
    pb.WorkspaceTransition.START: "start",
    pb.WorkspaceTransition.STOP: "stop",
    pb.WorkspaceTransition.DESTROY: "destroy",
}

_NOT_SECRET = frozenset(
    {
        "TF_CLI_CONFIG_FILE",
        "TF_IGNORE",
        "TF_IN_AUTOMATION",
        "TF_LOG",
        "TF_LOG_CORE",
        "TF_LOG_PATH",
        "TF_LOG_PROVIDER",
        "TF_PLUGIN_CACHE_DIR",
        "TF_REGISTRY_CLIENT_TIMEOUT",
        "TF_REGISTRY_DISCOVERY_RETRY",
    }
)
"""Variables whose values hold paths and numbers."""


def inherited(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the part of the daemon's environment that terraform gets: no CODER_* variables, no missing configuration
    file.

    A TF_CLI_CONFIG_FILE that does not exist would put a warning into the log of every command.
    """
    kept = {name: value for name, value in environment.items() if not name.upper().startswith("CODER_")}
    config_file = kept.get("TF_CLI_CONFIG_FILE", "")
    if config_file and not Path(config_file).is_file():
        del kept["TF_CLI_CONFIG_FILE"]
    for name in ("TF_CLI_ARGS", "TF_REATTACH_PROVIDERS", "TF_DATA_DIR", "TF_WORKSPACE", "TF_INPUT"):
        kept.pop(name, None)  # these would change the meaning of our commands
    kept["CHECKPOINT_DISABLE"] = "1"
    return kept


def explain(environment: Mapping[str, str]) -> list[str]:
    """Return the log lines about variables an administrator set for terraform, because they change its behaviour.

    Values of variables and tokens (`TF_VAR_…`, `TF_TOKEN_…`) may be secret and are omitted.
    """
    return [
        f"terraform environment variable: {name}={value if name in _NOT_SECRET else '<value redacted>'}"
        for name, value in sorted(environment.items())
        if name.startswith("TF_")
    ]


def job_variables(
    metadata: pb.Metadata,
    agent_scripts: Mapping[tuple[str, str], str],
    *,
    parameters: Iterable[pb.RichParameterValue] = (),
    previous: Iterable[pb.RichParameterValue] = (),
    external_auth: Iterable[pb.ExternalAuthProvider] = (),
) -> dict[str, str]:
    """Return all variables that the provider reads (docs/protocol/provisioners.md#terraform)."""
    variables = _metadata_variables(metadata)
    for (system, architecture), script in agent_scripts.items():
        variables[f"CODER_AGENT_SCRIPT_{system}_{architecture}"] = script
    for value in parameters:
        variables[PARAMETER_PREFIX + variable_suffix(value.name)] = value.value
    for value in previous:
        variables[PREVIOUS_PREFIX + variable_suffix(value.name)] = value.value
    for provider in external_auth:
        # Version 1 of the provider reads the older name.
        variables[f"CODER_GIT_AUTH_ACCESS_TOKEN_{provider.id}"] = provider.access_token
        variables[f"CODER_EXTERNAL_AUTH_ACCESS_TOKEN_{provider.id}"] = provider.access_token
    # An operating system's environment cannot hold NUL bytes.
    return {name: value.replace("\x00", "") for name, value in variables.items() if "\x00" not in name}


def _metadata_variables(metadata: pb.Metadata) -> dict[str, str]:
    roles = [{"name": role.name, "org_id": role.org_id} for role in metadata.workspace_owner_rbac_roles]
    variables = {
        "CODER_AGENT_URL": metadata.coder_url,
        "CODER_WORKSPACE_TRANSITION": _TRANSITIONS.get(metadata.workspace_transition, "start"),
        "CODER_WORKSPACE_NAME": metadata.workspace_name,
        "CODER_WORKSPACE_OWNER": metadata.workspace_owner,
        "CODER_WORKSPACE_OWNER_EMAIL": metadata.workspace_owner_email,
        "CODER_WORKSPACE_OWNER_NAME": metadata.workspace_owner_name,
        "CODER_WORKSPACE_OWNER_OIDC_ACCESS_TOKEN": metadata.workspace_owner_oidc_access_token,
        "CODER_WORKSPACE_OWNER_GROUPS": json.dumps(list(metadata.workspace_owner_groups), separators=(",", ":")),
        "CODER_WORKSPACE_OWNER_SSH_PUBLIC_KEY": metadata.workspace_owner_ssh_public_key,
        "CODER_WORKSPACE_OWNER_SSH_PRIVATE_KEY": metadata.workspace_owner_ssh_private_key,
        "CODER_WORKSPACE_OWNER_LOGIN_TYPE": metadata.workspace_owner_login_type,
        "CODER_WORKSPACE_OWNER_RBAC_ROLES": json.dumps(roles, separators=(",", ":")),
        "CODER_WORKSPACE_ID": metadata.workspace_id,
        "CODER_WORKSPACE_OWNER_ID": metadata.workspace_owner_id,
        "CODER_WORKSPACE_OWNER_SESSION_TOKEN": metadata.workspace_owner_session_token,
        "CODER_WORKSPACE_TEMPLATE_ID": metadata.template_id,
        "CODER_WORKSPACE_TEMPLATE_NAME": metadata.template_name,
        "CODER_WORKSPACE_TEMPLATE_VERSION": metadata.template_version,
        "CODER_WORKSPACE_BUILD_ID": metadata.workspace_build_id,
        "CODER_TASK_ID": metadata.task_id,
        "CODER_TASK_PROMPT": metadata.task_prompt,
    }
    if metadata.prebuilt_workspace_build_stage == pb.PrebuiltWorkspaceBuildStage.CREATE:
        variables["CODER_WORKSPACE_IS_PREBUILD"] = "true"
    elif metadata.prebuilt_workspace_build_stage == pb.PrebuiltWorkspaceBuildStage.CLAIM:
        variables["CODER_WORKSPACE_IS_PREBUILD_CLAIM"] = "true"
    tokens = metadata.running_agent_auth_tokens
    for token in tokens:
        # The provider asks for the token of agent "" when there is only one.
        agent = "" if len(tokens) == 1 else token.agent_id
        variables[RUNNING_TOKEN_PREFIX + hashlib.sha256(agent.encode()).hexdigest()] = token.token
    return variables
