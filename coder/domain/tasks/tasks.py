"""Rules of tasks: state, startup message and names.

A task has no status of its own: it follows from its workspace's latest build, that build's agent, and the task's app,
in this order; the first that is not healthy decides (recorded exchanges of area `tasks`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from coder.domain.foundation.names import MAX_DISPLAY_NAME, MAX_NAME

TaskStatus = Literal["pending", "initializing", "active", "paused", "error", "unknown"]
TaskState = Literal["working", "idle", "complete", "failed"]
STATUSES: tuple[TaskStatus, ...] = get_args(TaskStatus)

MAX_SNAPSHOT = 64 << 10
"""Maximum bytes of an agent's snapshot of a conversation."""

APP_STATES: dict[str, TaskState] = {"working": "working", "idle": "idle", "complete": "complete", "failure": "failed"}
"""States an app reports -> states of the task."""

_SUFFIX = 4
# Characters that distinguish generated names: 1.7 million combinations.
_WORKING_AGENTS = frozenset({"ready", "start_timeout", "start_error"})
_APP_HEALTH: dict[str, TaskStatus] = {
    "disabled": "active",
    "healthy": "active",
    "initializing": "initializing",
    "unhealthy": "error",
}


@dataclass(frozen=True, slots=True)
class Build:
    """The latest build of a task's workspace."""

    transition: str
    status: str
    """Workspace status of the build (`build_status`, coder/domain/workspaces/builds.py)."""


@dataclass(frozen=True, slots=True)
class TaskAgent:
    """Agent that the task's app belongs to."""

    status: str
    lifecycle: str


def task_status(build: Build | None, agent: TaskAgent | None, app_health: str | None) -> TaskStatus:
    """Return the task's status, an item of STATUSES."""
    if build is None:
        return "pending"
    if build.status == "failed":
        return "error"
    if build.transition != "start":
        return "paused" if build.status in {"stopped", "deleted"} else "unknown"
    if build.status in {"pending", "starting"}:
        return "initializing"
    if build.status != "running":
        return "unknown"
    if agent is None or agent.lifecycle in {"created", "starting"}:
        return "initializing"
    if agent.lifecycle not in _WORKING_AGENTS:
        return "unknown"
    return _APP_HEALTH.get(app_health or "", "unknown")


def startup_message(build: Build | None, agent: TaskAgent | None, app_health: str | None) -> str:
    """Return the startup message of a task; empty when the task is not starting."""
    if build is None or task_status(build, agent, app_health) != "initializing":
        return ""
    if build.status != "running":
        return f"Workspace is {build.status}"
    if agent is None or agent.status != "connected":
        return f"Agent is {agent.status if agent else 'connecting'}"
    return "Agent is starting" if agent.lifecycle in {"created", "starting"} else "App is initializing"


def explain_name(name: str) -> str:
    """Return why a task (and its workspace) cannot have this name; empty when it can."""
    if len(name) > MAX_NAME:
        return f"must be <= {MAX_NAME} characters"
    if not name:
        return "must be >= 1 character"
    if not re.fullmatch(r"[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*", name):
        return "must be alphanumeric with hyphens"
    return f'cannot be "{name}", which is reserved' if name in {"new", "create"} else ""


def explain_display_name(name: str) -> str:
    """Return why a display name is invalid; empty when it is valid."""
    return f"must be 0 <= x <= {MAX_DISPLAY_NAME} characters" if len(name) > MAX_DISPLAY_NAME else ""


def name_from_prompt(prompt: str, suffix: str) -> str:
    """Return a name for use in addresses: the prompt's first words and `suffix` (4 letters or digits)."""
    words = re.findall(r"[a-z0-9]+", prompt.lower().replace("'", ""))
    room = MAX_NAME - _SUFFIX - 1
    kept = ""
    for word in words:
        longer = f"{kept}-{word}" if kept else word[:room]
        if len(longer) > room:
            break
        kept = longer
    return f"{kept or 'task'}-{suffix[:_SUFFIX]}"


def display_name_from_prompt(prompt: str) -> str:
    """Return the prompt's first line with a capital, cut at a word if too long for a title."""
    line = next((" ".join(part.split()) for part in prompt.splitlines() if part.strip()), "")
    line = line[:1].upper() + line[1:]
    if len(line) <= MAX_DISPLAY_NAME:
        return line
    cut = line[: MAX_DISPLAY_NAME - 1]
    head, _, _ = cut.rpartition(" ")
    return f"{(head or cut).rstrip()}…"
