"""Client of the `devcontainer` command (@devcontainers/cli), which builds dev containers and parses their
descriptions."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from coder.agent.devcontainers.commands import (
    MAX_STDERR,
    CommandError,
    CommandResult,
    find_program,
    read_json_untrusted,
    run_command,
    short_text,
)
from coder.agent.devcontainers.configuration import Configuration, read_configuration_untrusted

CLI_MISSING = (
    "the devcontainer command is not installed in this workspace: `npm install --global @devcontainers/cli` brings it"
)
BUILD_TIMEOUT = 3600.0
READ_TIMEOUT = 60.0
MAX_ANSWER = 4 << 20
"""Limits (ours): seconds for a build, which may fetch images, and for reading a description; bytes of the output."""


@dataclass(frozen=True, slots=True)
class Built:
    """Result of `devcontainer up` for a running container."""

    container_id: str
    remote_user: str = ""
    workspace_folder: str = ""
    "Path inside the container."


async def find_devcontainer_cli(env: Mapping[str, str]) -> str:
    """Return the path of the command for programs with that environment. Raises CommandError with an installation
    hint."""
    program = await find_program(["devcontainer"], env)
    if program is None:
        raise CommandError(CLI_MISSING)
    return program


async def build(
    folder: str,
    config: str,
    env: Mapping[str, str],
    on_stderr: Callable[[bytes], Awaitable[None]],
    *,
    remove_existing: bool,
) -> Built:
    """Build and start the container; `on_stderr` receives the output meanwhile. Raises CommandError."""
    argv = [
        await find_devcontainer_cli(env),
        "up",
        *_selector_options(folder, config),
        *(["--remove-existing-container"] if remove_existing else []),
    ]
    return read_outcome_untrusted(
        await run_command(argv, env, seconds=BUILD_TIMEOUT, max_output=MAX_ANSWER, on_stderr=on_stderr)
    )


async def read_configuration(folder: str, config: str, env: Mapping[str, str]) -> Configuration:
    """Return the parsed configuration. Raises CommandError."""
    argv = [
        await find_devcontainer_cli(env),
        "read-configuration",
        *_selector_options(folder, config),
        "--include-merged-configuration",
    ]
    result = await run_command(argv, env, seconds=READ_TIMEOUT, max_output=MAX_ANSWER)
    return read_configuration_untrusted(result.require("Reading the dev container's description"))


def _selector_options(folder: str, config: str) -> list[str]:
    # Each option and its value in one argument: a value that begins with a hyphen is not parsed as an option.
    return [f"--workspace-folder={folder}", *([f"--config={os.path.join(folder, config)}"] if config else [])]  # noqa: PTH118 - a text for another program


def read_outcome_untrusted(result: CommandResult) -> Built:
    """Parse the output of `devcontainer up`, whose last line is a JSON object. Raises CommandError when nothing was
    built."""
    lines = [line for line in result.output.decode("utf-8", "replace").splitlines() if line.strip()]
    try:
        outcome = read_json_untrusted(lines[-1].encode()) if lines else {}
    except (ValueError, RecursionError):
        outcome = {}
    if not isinstance(outcome, dict):
        outcome = {}
    if outcome.get("outcome") == "success" and (ident := short_text(outcome, "containerId")):
        return Built(ident, short_text(outcome, "remoteUser"), short_text(outcome, "remoteWorkspaceFolder"))
    reason = str(outcome.get("description") or outcome.get("message") or "")[:MAX_STDERR]
    last = result.stderr_tail.splitlines()[-1:] or [f"it exited with code {result.status}"]
    raise CommandError(f"devcontainer up failed: {reason or last[0]}")
