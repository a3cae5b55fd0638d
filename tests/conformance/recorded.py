"""Replays the recorded exchanges, each area on a server of its own as its README says.

Areas with builds need Terraform; `agents` also an agent and a web server; `oidc` and `external_auth` need a stand-in
identity provider. What is missing on the machine is reported as an area without matches, never left out.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coder.cli.provisioners import builtin_daemons
from tests.kit.coderd import FIRST_USER, running_coderd
from tests.kit.replay import Report, load_area, replay_area, server_settings

_BUILDS = ("agents", "builds", "provisioners", "tasks", "templates", "workspace_options", "workspaces")
_PROVIDER = ("external_auth", "oidc")
_PLAIN = (
    "auth", "deployment", "files", "first_user", "http", "oauth2_provider", "organizations", "ratelimit", "tokens",
    "users",
)  # fmt: skip
AREAS = tuple(sorted((*_BUILDS, *_PROVIDER, *_PLAIN)))


async def replay_areas(areas: Sequence[str], folder: Path) -> list[Report]:
    """One report an area."""
    return [await _replay(area, folder) for area in areas]


async def _replay(area: str, folder: Path) -> Report:
    lines = load_area(area)
    nothing = Report(area, total=len(lines), mismatches={line["n"]: ["not replayed"] for line in lines})
    if area in _PROVIDER or (area in _BUILDS and not shutil.which("terraform")):
        return nothing
    settings: dict[str, Any] = dict(server_settings(area))
    if area in _BUILDS:
        settings |= {"provisioner": builtin_daemons, "provisioner_daemons": 3, "cache_dir": folder}
    async with running_coderd(**settings) as world:
        if area != "first_user":
            created = await world.post("/api/v2/users/first", FIRST_USER)
            if created.status_code != 201:
                return nothing
        return await replay_area(world.url, area)
