"""What is known of one dev container, and how the list of containers changes it. No I/O."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

from coder.agent.devcontainers.builder import Built
from coder.agent.devcontainers.configuration import agent_name
from coder.agent.devcontainers.engine import FILE_LABEL, FOLDER_LABEL, ContainerRow, Listing
from coder.agent.devcontainers.sub_agents import SubAgent
from coder.rpc.proto import agent_pb2

MAX_NAMED = 5
"""Ours: containers that one warning names."""
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
    declared: bool = False
    "By the template."
    found: bool = False
    "By its project's description."
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

    @property
    def is_idle(self) -> bool:
        """Neither does it run nor is anything done to it."""
        return not self.busy and not self.running

    @property
    def runs_in(self) -> str:
        """The container that is to have an agent; "" without one."""
        return self.container.id if self.container is not None and self.running else ""

    @property
    def described(self) -> bool:
        """Whether it stays in the list without a container."""
        return self.declared or self.found

    def shown(self) -> dict[str, Any]:
        """As the API has it."""
        found: dict[str, Any] = {
            "id": str(self.id),
            "name": self.name,
            "workspace_folder": self.folder,
            "status": self.status,
            "dirty": self.dirty,
        }
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
            ident,
            name,
            folder,
            one.config_path,
            declared=True,
            source=sources.get(one.id, b""),
            preset=preset,
        )
    return list(found.values())


def presets(manifest: agent_pb2.Manifest) -> set[UUID]:
    """The agents that the template has made for its dev containers."""
    return {UUID(bytes=one.subagent_id) for one in manifest.devcontainers if len(one.subagent_id) == 16}


def take_declared(known: dict[str, Devcontainer], found: Iterable[Devcontainer]) -> None:
    """What the template declares now. One that it has declared before keeps its container, and what was done with it;
    one that it declares no longer is like any that somebody has built."""
    for one in known.values():
        one.declared, one.source, one.preset = False, b"", None
    for one in found:
        before = known.setdefault(one.folder, one)
        before.id, before.name, before.config = one.id, one.name, one.config
        before.declared, before.source, before.preset = True, one.source, one.preset


def known_as(folder: str) -> UUID:
    """An id for the dev container of a folder nobody gave one: the same at every look."""
    # As uuid5, of bytes: a folder's name need not be UTF-8.
    return UUID(
        bytes=hashlib.sha1(_NAMESPACE.bytes + os.fsencode(folder), usedforsecurity=False).digest()[:16], version=5
    )


def take_listing(known: dict[str, Devcontainer], listing: Listing) -> list[ContainerRow]:
    """Gives each its container, adds those that somebody else has built, drops those that are gone.

    Of several containers of a folder the running one counts, else the newest, which is listed first. Of a listing that
    is not complete only what is in it is believed. Returned are containers that only say of themselves whose they are.
    """
    found: dict[str, ContainerRow] = {}
    strangers = []
    for row in listing.containers:
        folder = row.labels.get(FOLDER_LABEL, "")
        if not Path(folder).is_absolute():
            continue
        entry = known.get(folder)
        if not _belongs(row, folder, entry):
            # While it is being built nobody knows yet which container is the one.
            strangers += [row] if entry is None or not entry.busy else []
        elif folder not in found or (row.running and not found[folder].running):
            found[folder] = row
    for folder, row in found.items():
        if folder not in known:
            name = agent_name(folder)
            known[folder] = Devcontainer(known_as(folder), name, folder, row.labels.get(FILE_LABEL, ""))
    for folder, one in list(known.items()):
        if folder in found or listing.complete:
            one.container = found.get(folder)
        if one.running:
            one.error = ""
        if listing.complete and one.container is None and not one.described and not one.busy:
            del known[folder]
    return strangers


def explain_strangers(rows: Sequence[ContainerRow]) -> list[str]:
    """A warning about those that are marked with folders of which they have nothing."""
    if not rows:
        return []
    names = ", ".join([*(row.name for row in rows[:MAX_NAMED]), *(["…"] if len(rows) > MAX_NAMED else [])])
    return [f"These are marked as dev containers of folders of which they have nothing, and get no agent: {names}."]


def _belongs(row: ContainerRow, folder: str, entry: Devcontainer | None) -> bool:
    """Whether a container that is marked with a folder is that folder's: we have built it, or it has some of it.

    The mark alone says little: an image may have it, and whoever starts that by hand gives it no agent of theirs.
    """
    if entry is not None and entry.built is not None and row.id == entry.built.container_id:
        return True
    return any(shows(source, folder) for source in row.volumes)


def shows(source: str, folder: str) -> bool:
    """Whether a container that has `source` of the machine has something of the folder: all of it, with what is above,
    as of a project within a repository, or a part. An engine that is elsewhere may name it behind a place of its own
    (`/host_mnt/home/…`)."""
    outer, inner = (f"{text.rstrip('/')}/" for text in (source, folder))
    return bool(source) and (inner.startswith(outer) or inner in outer)
