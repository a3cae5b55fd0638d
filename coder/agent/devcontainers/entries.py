"""What is known of one dev container, and how the list of containers changes it. No I/O."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

from coder.agent.devcontainers.builder import Built
from coder.agent.devcontainers.configuration import agent_name
from coder.agent.devcontainers.engine import FILE_LABEL, FOLDER_LABEL, ContainerRow, Listing
from coder.agent.devcontainers.sub_agents import SubAgent
from coder.rpc.proto import agent_pb2

Busy = Literal["", "starting", "stopping", "deleting"]
_NAMESPACE = UUID("5b0f4a56-7c5e-4c53-9d3f-0a4a6f1d2b90")


@dataclass(slots=True)
class Devcontainer:
    """One of them, whether it runs or not."""

    id: UUID
    name: str
    folder: str
    "On this machine."
    config: str = ""
    "Of its description; relative to the folder, or empty for the usual place."
    described: bool = False
    "Whether the template or a project has it: then it stays in the list without a container."
    declared: bool = False
    "By the template."
    source: bytes = b""
    "Where its lines go in the agent's log; empty: by its id."
    preset: UUID | None = None
    "The agent the template has made for it."
    busy: Busy = ""
    error: str = ""
    "Why it could not be built."
    agent_error: str = ""
    "Why its agent does not run."
    dirty: bool = False
    container: ContainerRow | None = None
    built: Built | None = None
    agent: SubAgent | None = None
    asked_for: bytes = b""
    "The request its agent was made by."

    @property
    def log_source(self) -> bytes:
        return self.source or self.id.bytes

    @property
    def status(self) -> str:
        if self.busy:
            return self.busy
        if self.container is not None and self.container.running:
            return "running"
        return "error" if self.error else "stopped"

    @property
    def running(self) -> bool:
        return self.status == "running"

    def shown(self) -> dict[str, Any]:
        """As the API has it."""
        found: dict[str, Any] = {
            "id": str(self.id), "name": self.name, "workspace_folder": self.folder, "status": self.status,
            "dirty": self.dirty,
        }  # fmt: skip
        if self.config:
            found["config_path"] = self.config
        if self.container is not None:
            found["container"] = self.container.shown()
        if self.agent is not None:
            found["agent"] = self.agent.shown()
        if self.preset is not None:
            found["subagent_id"] = str(self.preset)
        if error := self.error or self.agent_error:
            found["error"] = error
        return found

    def inside(self, configured: str) -> str:
        """The folder's place in the container: as built, as described, or as it is mounted."""
        mounted = self.container.volumes.get(self.folder, "") if self.container is not None else ""
        return (self.built.workspace_folder if self.built is not None else "") or configured or mounted


def declared(manifest: agent_pb2.Manifest, root: Path, home: Path) -> list[Devcontainer]:
    """Those of the template. A folder that is not absolute lies below the workspace's directory `root`, or at home."""
    found = {}
    sources = {script.id: script.log_source_id for script in manifest.scripts}
    for one in manifest.devcontainers:
        at_home = one.workspace_folder == "~" or one.workspace_folder.startswith("~/")
        folder = str(home / one.workspace_folder[2:] if at_home else root / one.workspace_folder)
        preset = UUID(bytes=one.subagent_id) if len(one.subagent_id) == 16 else None
        ident = UUID(bytes=one.id) if len(one.id) == 16 else known_as(folder)
        name = one.name or agent_name(folder)
        found[folder] = Devcontainer(
            ident, name, folder, one.config_path, described=True, declared=True, source=sources.get(one.id, b""),
            preset=preset,
        )  # fmt: skip
    return list(found.values())


def known_as(folder: str) -> UUID:
    """An id for the dev container of a folder nobody gave one: the same at every look."""
    # As uuid5, of bytes: a folder's name need not be UTF-8.
    return UUID(
        bytes=hashlib.sha1(_NAMESPACE.bytes + os.fsencode(folder), usedforsecurity=False).digest()[:16], version=5
    )


def take_listing(known: dict[str, Devcontainer], listing: Listing) -> None:
    """Gives each its container, adds those that somebody else has built, drops those that are gone.

    Of several containers of a folder the running one counts, else the newest, which is listed first.
    """
    found: dict[str, ContainerRow] = {}
    for row in listing.containers:
        folder = row.labels.get(FOLDER_LABEL, "")
        if Path(folder).is_absolute() and (folder not in found or (row.running and not found[folder].running)):
            found[folder] = row
    for folder, row in found.items():
        if folder not in known:
            name = agent_name(folder)
            known[folder] = Devcontainer(known_as(folder), name, folder, row.labels.get(FILE_LABEL, ""))
    for folder, entry in list(known.items()):
        entry.container = found.get(folder)
        if entry.running:
            entry.error = ""
        if entry.container is None and not entry.described and not entry.busy:
            del known[folder]
