"""coder_workspace, coder_workspace_owner, coder_workspace_tags, coder_provisioner, coder_task, coder_external_auth."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from coder.domain.foundation.go_uuid import NIL, NotUuid, parse_uuid
from coder.provisionerd.terraform.provider.diagnostics import Diagnostic, error
from coder.provisionerd.terraform.provider.go_json import GoJsonError, decode_list
from coder.provisionerd.terraform.provider.kinds import Body, DataKind, ProviderContext
from coder.provisionerd.terraform.provider.schema import (
    BOOL,
    NUMBER,
    STRING,
    STRING_LIST,
    STRING_MAP,
    Attribute,
    CtyType,
    Schema,
)

_ROLES: CtyType = ["list", ["object", {"name": "string", "org_id": "string"}]]


def _read_workspace(context: ProviderContext, _config: Body, state: Body) -> Iterator[Diagnostic]:
    env = context.environment
    transition = env.get("CODER_WORKSPACE_TRANSITION") or "start"
    claim = env.get("CODER_WORKSPACE_IS_PREBUILD_CLAIM", "").lower() == "true"
    prebuild = not claim and env.get("CODER_WORKSPACE_IS_PREBUILD", "").lower() == "true"
    url = urlsplit(context.url)
    state.update(
        id=env.get("CODER_WORKSPACE_ID") or context.new_id(),
        name=env.get("CODER_WORKSPACE_NAME") or "default",
        transition=transition,
        start_count=1 if transition == "start" else 0,
        is_prebuild=prebuild,
        is_prebuild_claim=claim,
        prebuild_count=1 if prebuild else 0,
        access_url=context.url,
        access_port=url.port or (443 if url.scheme == "https" else 80),
    )
    in_build = bool(env.get("CODER_WORKSPACE_BUILD_ID"))
    for name, label in (("id", "ID"), ("name", "name"), ("version", "version")):
        variable = f"CODER_WORKSPACE_TEMPLATE_{name.upper()}"
        state[f"template_{name}"] = env.get(variable, "")
        if in_build and not env.get(variable):
            yield error(f"template {label} is missing: {variable} is required")
            return


def _read_owner(context: ProviderContext, _config: Body, state: Body) -> Iterator[Diagnostic]:
    env = context.environment
    state.update(
        id=env.get("CODER_WORKSPACE_OWNER_ID") or context.new_id(),
        name=env.get("CODER_WORKSPACE_OWNER") or "default",
        full_name=env.get("CODER_WORKSPACE_OWNER_NAME") or "default",
        email=env.get("CODER_WORKSPACE_OWNER_EMAIL") or "default@example.com",
        ssh_public_key=env.get("CODER_WORKSPACE_OWNER_SSH_PUBLIC_KEY", ""),
        ssh_private_key=env.get("CODER_WORKSPACE_OWNER_SSH_PRIVATE_KEY", ""),
        session_token=env.get("CODER_WORKSPACE_OWNER_SESSION_TOKEN", ""),
        oidc_access_token=env.get("CODER_WORKSPACE_OWNER_OIDC_ACCESS_TOKEN", ""),
        # null, unlike the other fields, when it is missing
        login_type=env.get("CODER_WORKSPACE_OWNER_LOGIN_TYPE") or None,
    )
    groups = env.get("CODER_WORKSPACE_OWNER_GROUPS")
    roles = env.get("CODER_WORKSPACE_OWNER_RBAC_ROLES")
    try:
        state["groups"] = [*decode_list(groups, str)] if groups else []
    except GoJsonError as problem:
        yield error(f"invalid user groups: {problem.message}")
        return
    try:
        decoded_roles = decode_list(roles, dict) if roles else []
    except GoJsonError as problem:
        yield error(f"invalid user rbac roles: {problem.message}")
        return
    state["rbac_roles"] = [{"name": role.get("name", ""), "org_id": role.get("org_id", "")} for role in decoded_roles]


def _read_tags(context: ProviderContext, _config: Body, state: Body) -> Iterator[Diagnostic]:
    state["id"] = context.new_id()
    return iter(())


def _read_provisioner(context: ProviderContext, _config: Body, state: Body) -> Iterator[Diagnostic]:
    state.update(id=context.new_id(), os=context.os, arch=context.arch)
    return iter(())


def _read_task(context: ProviderContext, _config: Body, state: Body) -> Iterator[Diagnostic]:
    task_id = context.environment.get("CODER_TASK_ID", "")
    parsed: str | NotUuid = parse_uuid(task_id) if task_id else NIL
    if isinstance(parsed, NotUuid):
        yield error(parsed.reason)
        return
    in_task = parsed != NIL
    state.update(
        id=task_id if in_task else context.new_id(),
        prompt=context.environment.get("CODER_TASK_PROMPT", ""),
        enabled=in_task,
    )


def _read_external_auth(context: ProviderContext, _config: Body, state: Body) -> Iterator[Diagnostic]:
    if not state["id"]:
        yield error("id is required")
        return
    state["access_token"] = context.environment.get(f"CODER_EXTERNAL_AUTH_ACCESS_TOKEN_{state['id']}", "")


def _all_computed(description: str, version: int = 1, **types: CtyType) -> Schema:
    body = {name: Attribute(kind, "computed") for name, kind in types.items()}
    return Schema(body, version=version, description=description)


workspace = DataKind(
    _all_computed(
        "The workspace that is being built.",
        id=STRING,
        name=STRING,
        transition=STRING,
        access_url=STRING,
        access_port=NUMBER,
        start_count=NUMBER,
        prebuild_count=NUMBER,
        is_prebuild=BOOL,
        is_prebuild_claim=BOOL,
        template_id=STRING,
        template_name=STRING,
        template_version=STRING,
    ),
    _read_workspace,
)

_SECRET = Attribute(STRING, "computed", sensitive=True)
_OWNER = _all_computed(
    "The owner of the workspace.",
    version=0,
    id=STRING,
    name=STRING,
    full_name=STRING,
    email=STRING,
    ssh_public_key=STRING,
    login_type=STRING,
    groups=STRING_LIST,
    rbac_roles=_ROLES,
)
workspace_owner = DataKind(
    Schema(
        {**_OWNER.body, "ssh_private_key": _SECRET, "session_token": _SECRET, "oidc_access_token": _SECRET},
        version=0,
        description=_OWNER.description,
    ),
    _read_owner,
)

workspace_tags = DataKind(
    Schema(
        {
            "id": Attribute(STRING, "optional+computed"),
            "tags": Attribute(STRING_MAP, description="Tags a provisioner must have to run the job."),
        },
        description="Which provisioners may build workspaces of this template.",
    ),
    _read_tags,
)

provisioner = DataKind(
    Schema(
        {
            "id": Attribute(STRING, "optional+computed"),
            "os": Attribute(STRING, "computed"),
            "arch": Attribute(STRING, "computed"),
        },
        description="The machine Terraform runs on.",
    ),
    _read_provisioner,
)

task = DataKind(
    _all_computed("The task this workspace was made for.", version=0, id=STRING, prompt=STRING, enabled=BOOL),
    _read_task,
)

external_auth = DataKind(
    Schema(
        {
            "id": Attribute(STRING, "required", description="Name of the configured provider."),
            "optional": Attribute(BOOL, description="Whether the owner may skip the login."),
            "access_token": Attribute(STRING, "computed", sensitive=True, description="The owner's token."),
        },
        description="The owner's login at another service.",
    ),
    _read_external_auth,
)
