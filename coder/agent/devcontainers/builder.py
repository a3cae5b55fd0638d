"""The `devcontainer` command (@devcontainers/cli): builds dev containers and understands their descriptions."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from coder.agent.devcontainers.commands import (
    MAX_COMPLAINT,
    CommandError,
    Said,
    ask,
    find_program,
    read_json_untrusted,
    short_text,
)
from coder.agent.devcontainers.configuration import Configuration, read_configuration_untrusted

NO_BUILDER = (
    "the devcontainer command is not installed in this workspace: `npm install --global @devcontainers/cli` brings it"
)
UP_TIME = 3600.0
READ_TIME = 60.0
MAX_ANSWER = 4 << 20
"""Ours: seconds for a build, which may fetch images, and for reading a description; bytes of an answer."""


@dataclass(frozen=True, slots=True)
class Built:
    """What `devcontainer up` says of a container that runs."""

    container_id: str
    remote_user: str = ""
    workspace_folder: str = ""
    "Inside it."


async def find_builder(env: Mapping[str, str]) -> str:
    """The command, for programs with that environment. Raises CommandError that says what to install."""
    found = await find_program(["devcontainer"], env)
    if found is None:
        raise CommandError(NO_BUILDER)
    return found


async def build(
    folder: str,
    config: str,
    env: Mapping[str, str],
    tell: Callable[[bytes], Awaitable[None]],
    *,
    anew: bool,
) -> Built:
    """Has it running when it returns; `tell` gets what is said meanwhile. Raises CommandError."""
    argv = [await find_builder(env), "up", *_which(folder, config), *(["--remove-existing-container"] if anew else [])]
    return read_outcome_untrusted(await ask(argv, env, seconds=UP_TIME, max_output=MAX_ANSWER, tell=tell))


async def read_configuration(folder: str, config: str, env: Mapping[str, str]) -> Configuration:
    """Raises CommandError."""
    argv = [await find_builder(env), "read-configuration", *_which(folder, config), "--include-merged-configuration"]
    said = await ask(argv, env, seconds=READ_TIME, max_output=MAX_ANSWER)
    return read_configuration_untrusted(said.require("Reading the dev container's description"))


def _which(folder: str, config: str) -> list[str]:
    # In one word each: what begins with a hyphen is no option.
    return [f"--workspace-folder={folder}", *([f"--config={os.path.join(folder, config)}"] if config else [])]  # noqa: PTH118 - a text for another program


def read_outcome_untrusted(said: Said) -> Built:
    """Of `devcontainer up`, whose last line of output is an object. Raises CommandError when nothing was built."""
    lines = [line for line in said.output.decode("utf-8", "replace").splitlines() if line.strip()]
    try:
        outcome = read_json_untrusted(lines[-1].encode()) if lines else {}
    except (ValueError, RecursionError):
        outcome = {}
    if not isinstance(outcome, dict):
        outcome = {}
    if outcome.get("outcome") == "success" and (ident := short_text(outcome, "containerId")):
        return Built(ident, short_text(outcome, "remoteUser"), short_text(outcome, "remoteWorkspaceFolder"))
    reason = str(outcome.get("description") or outcome.get("message") or "")[:MAX_COMPLAINT]
    last = said.complaint.splitlines()[-1:] or [f"it ended with code {said.status}"]
    raise CommandError(f"devcontainer up failed: {reason or last[0]}")
