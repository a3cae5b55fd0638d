"""Environment and command line of every program the agent starts for a user.

Order of precedence, later wins: built-ins < the process's and the session's environment < the manifest's (with `$VAR`
expanded) < secrets < the agent's own overrides. Source: docs/protocol/agents.md#environment.
"""

from __future__ import annotations

import os
import re
import shlex
import uuid
from collections.abc import Mapping
from pathlib import Path

from coder.agent.platform import system
from coder.agent.state import AgentState, Identity
from coder.base.child_env import child_env

_VARIABLE = re.compile(r"\$(?:\{([^$}]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
SESSION_VARIABLES = ("CODER_SSH_SESSION_TYPE", "CODER_CONTAINER", "CODER_CONTAINER_USER")
"Variables that carry settings from the client to the agent; they never reach the command."
WORKSPACE_VARIABLES = (
    "CODER_WORKSPACE_NAME",
    "CODER_WORKSPACE_AGENT_NAME",
    "CODER_WORKSPACE_OWNER_NAME",
    "CODER_WORKSPACE_ID",
)
_PRIVATE_VARIABLES = ("CODER_AGENT_TOKEN", "CODER_AGENT_AUTH", "CODER_SESSION_TOKEN", "CODER_SELF")
"""Variables of this process that commands do not inherit. CODER_SELF would make another copy of this program take
itself for the agent's file."""
MAX_EXPANDED = 8 << 20
"Characters (ours) of a template's variables together; Linux gives a process six megabytes at most."
ID_SIZE = 16
"Bytes of a UUID; an older server sends none."


def find_identity() -> Identity:
    """Return the agent's user."""
    return Identity(*system.find_user())


def expand(text: str, env: Mapping[str, str], limit: int = MAX_EXPANDED) -> str:
    """Replace `$NAME` and `${NAME}`; unknown names become empty, as in a shell. A result of more than `limit`
    characters becomes empty: thirty variables that double each other would take a gigabyte."""
    pieces, end, size = list[str](), 0, 0
    for match in _VARIABLE.finditer(text):
        piece = text[end : match.start()] + env.get(match[1] if match[1] is not None else match[2], "")
        pieces.append(piece)
        end, size = match.end(), size + len(piece)
        if size > limit:
            return ""
    return "".join(pieces) + text[end:] if size + len(text) - end <= limit else ""


def expand_directory(text: str, identity: Identity, env: Mapping[str, str]) -> Path:
    """Return the manifest's directory as an absolute path; empty means home."""
    if not text:
        return identity.home
    if text == "~" or text.startswith("~/"):
        text = str(identity.home) + text[1:]
    path = Path(expand(text, {**env, "HOME": str(identity.home)}))
    return path if path.is_absolute() else identity.home / path


def command_environment(state: AgentState, session: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the complete environment of one command."""
    env = _without_secrets(state, session)
    if state.manifest is not None:
        for secret in state.manifest.secrets:
            if secret.env_name:
                env[secret.env_name] = secret.value.decode("utf-8", "replace")
    env |= {"CODER_AGENT_URL": state.url, "CODER_AGENT_TOKEN": state.token}
    if state.socket_path is not None:
        env["CODER_AGENT_SOCKET_PATH"] = str(state.socket_path)
    env["GIT_ASKPASS"] = state.executable
    return _with_scripts(state, env)


def query_environment(state: AgentState) -> dict[str, str]:
    """Return the environment for the agent's own read-only commands, without token and secrets."""
    return _with_scripts(state, _without_secrets(state, None))


def _with_scripts(state: AgentState, env: dict[str, str]) -> dict[str, str]:
    if state.script_bin is not None:
        env["PATH"] = f"{state.script_bin}{os.pathsep}{env.get('PATH', os.defpath)}"
    return {name: value for name, value in env.items() if _is_valid(name, value)}


def _append_to_path(path: str, folder: str) -> str:
    """Return PATH with the folder at its end, as the original's agent has it: the workspace's own programs win."""
    return path if folder in path.split(os.pathsep) else f"{path}{os.pathsep}{folder}" if path else folder


def _is_valid(name: str, value: str) -> bool:
    """Return whether a process can have the variable. An invalid one, of a template, a secret or a client, must not
    fail the command."""
    return name != "" and "=" not in name and "\0" not in name + value


def _without_secrets(state: AgentState, session: Mapping[str, str] | None) -> dict[str, str]:
    identity, manifest = state.identity, state.manifest
    # A shell reads it, on Windows too: there a backslash would quote, and a user's name can have a space.
    env = {"CODER": "true", "GIT_SSH_COMMAND": f"{shlex.quote(Path(state.executable).as_posix())} gitssh --"}
    env["CS_DISABLE_GETTING_STARTED_OVERRIDE"] = "true"
    env |= system.user_variables(identity.name, identity.home, identity.shell)
    if manifest is not None:
        env |= {
            "CODER_WORKSPACE_NAME": manifest.workspace_name,
            "CODER_WORKSPACE_AGENT_NAME": manifest.agent_name,
            "CODER_WORKSPACE_OWNER_NAME": manifest.owner_username,
        }
        if len(manifest.workspace_id) == ID_SIZE:
            env["CODER_WORKSPACE_ID"] = str(uuid.UUID(bytes=manifest.workspace_id))
        if manifest.vs_code_port_proxy_uri:
            env["VSCODE_PROXY_URI"] = manifest.vs_code_port_proxy_uri
    inherited = child_env()
    for name in _PRIVATE_VARIABLES:
        inherited.pop(name, None)
    if state.program_folder is not None:
        inherited["PATH"] = _append_to_path(inherited.get("PATH", os.defpath), str(state.program_folder))
    env |= inherited
    env |= {name: value for name, value in (session or {}).items() if name not in SESSION_VARIABLES}
    if manifest is not None:
        left = MAX_EXPANDED
        for name, value in manifest.environment_variables.items():
            env[name] = expand(value, env, left)
            left -= len(env[name])
    return env


def container_variables(state: AgentState) -> list[str]:
    """Return the names of the variables that a command in a container also gets: the template's."""
    names = ["CODER", *WORKSPACE_VARIABLES]
    return names + (sorted(state.manifest.environment_variables) if state.manifest is not None else [])


def command_line(identity: Identity, command: str | None) -> list[str] | str:
    """Return argv for a session: the login shell, the shell with a command, or a `#!` line's interpreter. On Windows it
    can be a command line."""
    if command and command.startswith("#!"):
        first, _, body = command[2:].partition("\n")
        interpreter = first.split()
        if interpreter:
            return [*interpreter, "-c", body]
    return system.shell_command(identity.shell, command)
