"""Rules of tasks."""

from __future__ import annotations

import pytest

from coder.domain.tasks.tasks import (
    Build,
    TaskAgent,
    display_name_from_prompt,
    explain_name,
    name_from_prompt,
    startup_message,
    task_status,
)

RUNNING = Build("start", "running")
READY = TaskAgent("connected", "ready")


@pytest.mark.parametrize(
    ("build", "agent", "health", "status", "message"),
    [
        (None, None, None, "pending", ""),
        (Build("start", "pending"), None, None, "initializing", "Workspace is pending"),
        (Build("start", "starting"), None, None, "initializing", "Workspace is starting"),
        (Build("start", "failed"), None, None, "error", ""),
        (Build("stop", "failed"), None, None, "error", ""),
        (Build("start", "canceled"), None, None, "unknown", ""),
        (Build("stop", "stopping"), None, None, "unknown", ""),
        (Build("stop", "stopped"), None, None, "paused", ""),
        (Build("delete", "deleted"), None, None, "paused", ""),
        (RUNNING, None, None, "initializing", "Agent is connecting"),
        (RUNNING, TaskAgent("connecting", "created"), "disabled", "initializing", "Agent is connecting"),
        (RUNNING, TaskAgent("timeout", "created"), "disabled", "initializing", "Agent is timeout"),
        (RUNNING, TaskAgent("connected", "starting"), "disabled", "initializing", "Agent is starting"),
        (RUNNING, READY, "initializing", "initializing", "App is initializing"),
        (RUNNING, READY, "disabled", "active", ""),
        (RUNNING, READY, "healthy", "active", ""),
        (RUNNING, READY, "unhealthy", "error", ""),
        (RUNNING, TaskAgent("connected", "start_error"), "healthy", "active", ""),
        (RUNNING, TaskAgent("connected", "shutting_down"), "healthy", "unknown", ""),
    ],
)
def test_status(build: Build | None, agent: TaskAgent | None, health: str | None, status: str, message: str) -> None:
    assert task_status(build, agent, health) == status
    assert startup_message(build, agent, health) == message


def test_names() -> None:
    assert name_from_prompt("Fix the login bug, please!", "ab12") == "fix-the-login-bug-please-ab12"
    assert name_from_prompt("überholspur", "ab12") == "berholspur-ab12"
    assert name_from_prompt("\n…", "ab12") == "task-ab12"
    assert name_from_prompt("x" * 90, "ab12") == "x" * 27 + "-ab12"
    for prompt in ("Fix it", "a" * 200, "Don't do that " * 9):
        assert explain_name(name_from_prompt(prompt, "zz99")) == ""
    assert explain_name("a b") == "must be alphanumeric with hyphens"
    assert explain_name("a" * 33) == "must be <= 32 characters"
    assert "reserved" in explain_name("new")


def test_titles() -> None:
    assert display_name_from_prompt("\n  fix   it \nand more") == "Fix it"
    assert display_name_from_prompt("élan vital") == "Élan vital"
    long = display_name_from_prompt("word " * 30)
    assert len(long) <= 64
    assert long.endswith("word…")
    assert len(display_name_from_prompt("x" * 200)) == 64
