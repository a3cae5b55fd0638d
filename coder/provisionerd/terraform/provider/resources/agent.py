"""coder_agent, coder_agent_instance, coder_external_agent: processes in a workspace that connect to the server."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from urllib.parse import urlsplit

from coder.provisionerd.terraform.provider.checks import at_least, between, one_of
from coder.provisionerd.terraform.provider.diagnostics import Diagnostic, error, warning
from coder.provisionerd.terraform.provider.kinds import Body, ProviderContext, ResourceKind
from coder.provisionerd.terraform.provider.readers import checked_text, known_blocks
from coder.provisionerd.terraform.provider.schema import BOOL, NUMBER, STRING, STRING_MAP, Attribute, Block, Schema
from coder.provisionerd.terraform.provider.values import UNKNOWN, Value

_DIR_DEPRECATED = "dir has been deprecated and will be removed in a future release."


def _check_dir(value: Value, _key: str) -> Iterator[Diagnostic]:
    if value not in {"", "$HOME", "~"}:
        yield warning('"dir" is deprecated and will be removed in a future release.')
        yield warning('Setting "dir" to a value other than $HOME will break Coder Desktop file sync.')


def _check_volume_path(value: Value, _key: str) -> Iterator[str]:
    if value == "":
        yield "volume path must not be empty"
    elif not checked_text(value).startswith("/"):
        yield "volume path must be an absolute path"


_METADATA = Block(
    "list",
    {
        "key": Attribute(STRING, "required", description="Name of the value, unique on the agent."),
        "display_name": Attribute(STRING, description="Name that users see."),
        "script": Attribute(STRING, "required", description="Run by the agent; its output is the value."),
        "interval": Attribute(NUMBER, "required", description="Seconds between two runs."),
        "timeout": Attribute(NUMBER, description="Seconds a run may take."),
        "order": Attribute(NUMBER, description="Position in the list; lower comes first."),
    },
    description="A value that the agent measures and the dashboard shows.",
)

_DISPLAY_APPS = Block(
    "set",
    {
        "vscode": Attribute(BOOL, default=True, description="Offer VS Code Desktop."),
        "vscode_insiders": Attribute(BOOL, default=False, description="Offer VS Code Insiders."),
        "web_terminal": Attribute(BOOL, default=True, description="Offer the terminal in the browser."),
        "port_forwarding_helper": Attribute(BOOL, default=True, description="Offer the port list."),
        "ssh_helper": Attribute(BOOL, default=True, description="Offer SSH instructions."),
    },
    max_items=1,
    computed=True,
    description="Built-in apps that the dashboard shows.",
)

_THRESHOLD = Attribute(NUMBER, "required", check=between(0, 100), description="Percentage that raises an alert.")
_ENABLED = Attribute(BOOL, "required", description="Whether the monitor is on.")

_RESOURCES_MONITORING = Block(
    "set",
    {
        "memory": Block("set", {"enabled": _ENABLED, "threshold": _THRESHOLD}, max_items=1),
        "volume": Block(
            "set",
            {
                "path": Attribute(STRING, "required", check=_check_volume_path, description="Mount point."),
                "enabled": _ENABLED,
                "threshold": _THRESHOLD,
            },
        ),
    },
    max_items=1,
    description="Monitors memory and volumes and notifies when they fill up.",
)

_AGENT = Schema(
    {
        "id": Attribute(STRING, "optional+computed"),
        "arch": Attribute(STRING, "required", check=one_of("amd64", "armv7", "arm64"), description="CPU architecture."),
        "os": Attribute(
            STRING, "required", check=one_of("linux", "darwin", "windows"), description="Operating system."
        ),
        "auth": Attribute(
            STRING,
            default="token",
            check=one_of("token", "google-instance-identity", "aws-instance-identity", "azure-instance-identity"),
            description="Authentication method of the agent.",
        ),
        "api_key_scope": Attribute(
            STRING,
            default="all",
            check=one_of("all", "no_user_data"),
            description="Scope of the agent's API key.",
        ),
        "dir": Attribute(
            STRING, check=_check_dir, deprecated=_DIR_DEPRECATED, description="Directory shells start in."
        ),
        "env": Attribute(STRING_MAP, description="Environment variables of everything the agent starts."),
        "startup_script": Attribute(STRING, description="Run when the workspace starts."),
        "shutdown_script": Attribute(STRING, description="Run before the workspace stops."),
        "startup_script_behavior": Attribute(
            STRING,
            default="non-blocking",
            check=one_of("blocking", "non-blocking"),
            description="Whether logins wait for the startup script.",
        ),
        "connection_timeout": Attribute(
            NUMBER, default=120, check=at_least(0), description="Seconds until a missing agent counts as timed out."
        ),
        "troubleshooting_url": Attribute(STRING, description="Page with help for users."),
        "motd_file": Attribute(STRING, description="File shown at login."),
        "order": Attribute(NUMBER, description="Position among the agents; lower comes first."),
        "token": Attribute(STRING, "computed", sensitive=True, description="Secret that the agent authenticates with."),
        "init_script": Attribute(STRING, "computed", description="Script that downloads and starts the agent."),
        "metadata": _METADATA,
        "display_apps": _DISPLAY_APPS,
        "resources_monitoring": _RESOURCES_MONITORING,
    },
    description="A process in the workspace that gives access to it.",
)

_ALL_BUT_INSIDERS: Body = {
    "vscode": True,
    "vscode_insiders": False,
    "web_terminal": True,
    "port_forwarding_helper": True,
    "ssh_helper": True,
}

# The provider asks for the token of agent "", whatever the agent's id is.
RUNNING_TOKEN_PREFIX = "CODER_RUNNING_WORKSPACE_AGENT_TOKEN_"  # noqa: S105 - a variable's name
_RUNNING_TOKEN = RUNNING_TOKEN_PREFIX + hashlib.sha256(b"").hexdigest()


def _plan(_context: ProviderContext, _config: Body, planned: Body) -> Iterator[Diagnostic]:
    seen: set[Value] = set()
    for item in known_blocks(planned["metadata"]):
        key = item["key"]
        if key is not UNKNOWN and key in seen:
            yield error(f'duplicate agent metadata key "{key}"')
            return
        seen.add(key)
    for monitoring in known_blocks(planned["resources_monitoring"]):
        paths: set[Value] = set()
        for volume in known_blocks(monitoring.get("volume")):
            path = volume["path"]
            if path is not UNKNOWN and path in paths:
                yield error(f'duplicate volume path "{path}"')
                return
            paths.add(path)


def _create(context: ProviderContext, _config: Body, state: Body) -> Iterator[Diagnostic]:
    if not state["display_apps"]:
        state["display_apps"] = [dict(_ALL_BUT_INSIDERS)]
    _refresh(context, state)
    return iter(())


def _refresh(context: ProviderContext, state: Body) -> None:
    if not state.get("display_apps"):
        state["display_apps"] = [dict(_ALL_BUT_INSIDERS)]
    # Every build gives the agent a new token, unless a claimed prebuild's agent keeps its current one.
    state["token"] = context.environment.get(_RUNNING_TOKEN) or context.new_id()
    state["init_script"] = _init_script(context, state)


def _init_script(context: ProviderContext, state: Body) -> str:
    script = context.environment.get(f"CODER_AGENT_SCRIPT_{state.get('os')}_{state.get('arch')}", "")
    url = urlsplit(context.url)
    return script.replace("${ACCESS_URL}", f"{url.scheme}://{url.netloc}/").replace(
        "${AUTH_TYPE}", checked_text(state.get("auth") or "")
    )


agent = ResourceKind(_AGENT, plan=_plan, create=_create, refresh=_refresh)

agent_instance = ResourceKind(
    Schema(
        {
            "id": Attribute(STRING, "optional+computed"),
            "agent_id": Attribute(STRING, "required", description="Agent that runs on the instance."),
            "instance_id": Attribute(STRING, "required", description="The cloud's name for the instance."),
        },
        version=0,
        description="Links an agent with instance identity authentication to its instance.",
    )
)

external_agent = ResourceKind(
    Schema(
        {
            "id": Attribute(STRING, "optional+computed"),
            "agent_id": Attribute(STRING, "required", description="Agent that a user starts by hand."),
        },
        description="An agent on a machine that Terraform does not manage.",
    )
)
