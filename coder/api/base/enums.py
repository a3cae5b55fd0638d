"""Enumerations that several nouns use. Those of a single noun are in its own file."""

from __future__ import annotations

from typing import Literal

GroupSource = Literal["oidc", "user"]
LogLevel = Literal["debug", "error", "info", "trace", "warn"]
LoginType = Literal["github", "none", "oidc", "password", "token", ""]
ProvisionerType = Literal["echo", "terraform"]
TimingStage = Literal["apply", "connect", "cron", "graph", "init", "plan", "start", "stop"]
UserStatus = Literal["active", "dormant", "suspended"]
WorkspaceAgentPortShareLevel = Literal["authenticated", "organization", "owner", "public"]
WorkspaceTransition = Literal["delete", "start", "stop"]
