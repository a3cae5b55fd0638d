"""State of one dev container, and how a list of containers changes it. No I/O."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from uuid import UUID

from coder.agent.devcontainers.builder import Built
from coder.agent.devcontainers.configuration import agent_name
from coder.agent.devcontainers.engine import FILE_LABEL, FOLDER_LABEL, ContainerRow, Listing
from coder.agent.devcontainers.sub_agents import SubAgent
from coder.base.json_types import JsonObject
from coder.rpc.proto import agent_pb2

MAX_NAMED = 5
"""Containers named in one warning (ours)."""
Busy = Literal["", "starting", "stopping", "deleting"]
_NAMESPACE = UUID("5b0f4a56-7c5e-4c53-9d3f-0a4a6f1d2b90")


@dataclass(slots=True)
class Devcontainer:
    """Dev container, running or not."""

    id: UUID
    name: str
    folder: str
    "Path on the agent's machine."
    config: str = ""
    "Path of its description, relative to the folder; empty for the default location."
    declared: bool = False
    "Whether the template declares it."
    discovered: bool = False
    "Whether it was discovered by its project's description."
    source: bytes = b""
    "Source of its lines in the agent's log; empty: its id."
    preset: UUID | None = None
    "Id of the sub-agent that the template created for it."
    busy: Busy = ""
    error: str = ""
    "Reason why the build failed."
    agent_error: str = ""
    "Reason why its sub-agent does not run."
    dirty: bool = False
    container: ContainerRow | None = None
    built: Built | None = None
    agent: SubAgent | None = None
    request_bytes: bytes = b""
    "Serialized request that created its sub-agent."

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
        """Whether it neither runs nor is being built or removed."""
        return not self.busy and not self.running

    @property
    def running_container_id(self) -> str:
        """Id of the running container that needs a sub-agent; "" without one."""
        return self.container.id if self.container is not None and self.running else ""

    @property
    def is_described(self) -> bool:
        """Whether it stays in the list without a container."""
        return self.declared or self.discovered

    def to_api(self) -> JsonObject:
        """Return the dev container as the API has it."""
        fields: JsonObject = {
            "id": str(self.id),
            "name": self.name,
            "workspace_folder": self.folder,
            "status": self.status,
            "dirty": self.dirty,
        }
        if self.config:
            fields["config_path"] = self.config
        if self.container is not None:
            fields["container"] = self.container.to_api()
        if self.agent is not None:
            fields["agent"] = self.agent.to_api()
        if self.preset is not None:
            fields["subagent_id"] = str(self.preset)
        if error := self.error or self.agent_error:
            fields["error"] = error
        return fields

    def folder_in_container(self, configured: str) -> str:
        """Return the folder's path in the container: as built, as configured, or as mounted."""
        mounted = self.container.volumes.get(self.folder, "") if self.container is not None else ""
        return (self.built.workspace_folder if self.built is not None else "") or configured or mounted


def declared(manifest: agent_pb2.Manifest, root: Path, home: Path) -> list[Devcontainer]:
    """Return the template's dev containers. A relative folder is below the workspace's directory `root`; `~` is
    `home`."""
    by_folder = {}
    sources = {script.id: script.log_source_id for script in manifest.scripts}
    for devcontainer in manifest.devcontainers:
        at_home = devcontainer.workspace_folder == "~" or devcontainer.workspace_folder.startswith("~/")
        folder = str(home / devcontainer.workspace_folder[2:] if at_home else root / devcontainer.workspace_folder)
        preset = UUID(bytes=devcontainer.subagent_id) if len(devcontainer.subagent_id) == 16 else None
        ident = UUID(bytes=devcontainer.id) if len(devcontainer.id) == 16 else id_of_folder(folder)
        name = devcontainer.name or agent_name(folder)
        by_folder[folder] = Devcontainer(
            ident,
            name,
            folder,
            devcontainer.config_path,
            declared=True,
            source=sources.get(devcontainer.id, b""),
            preset=preset,
        )
    return list(by_folder.values())


def preset_agents(manifest: agent_pb2.Manifest) -> set[UUID]:
    """Return the ids of the sub-agents that the template created for its dev containers."""
    return {
        UUID(bytes=devcontainer.subagent_id)
        for devcontainer in manifest.devcontainers
        if len(devcontainer.subagent_id) == 16
    }


def apply_declared(known: dict[str, Devcontainer], declarations: Iterable[Devcontainer]) -> None:
    """Apply the template's current declarations. A dev container declared before keeps its container and state. One
    that is no longer declared becomes like one that a user has built."""
    for devcontainer in known.values():
        devcontainer.declared, devcontainer.source, devcontainer.preset = False, b"", None
    for devcontainer in declarations:
        before = known.setdefault(devcontainer.folder, devcontainer)
        before.id, before.name, before.config = devcontainer.id, devcontainer.name, devcontainer.config
        before.declared, before.source, before.preset = True, devcontainer.source, devcontainer.preset


def id_of_folder(folder: str) -> UUID:
    """Return an id for the dev container of a folder without a declared id: the same at every poll."""
    # Like uuid5, but of bytes: a folder's name need not be UTF-8.
    return UUID(
        bytes=hashlib.sha1(_NAMESPACE.bytes + os.fsencode(folder), usedforsecurity=False).digest()[:16], version=5
    )


def apply_listing(known: dict[str, Devcontainer], listing: Listing) -> list[ContainerRow]:
    """Assign containers to known dev containers, add those built by others, remove those whose container has
    disappeared.

    Of several containers of a folder the running one counts, else the newest, which is listed first. An incomplete
    listing removes nothing. Returns the foreign containers: their label names a folder that they do not mount.
    """
    by_folder: dict[str, ContainerRow] = {}
    foreign = []
    for row in listing.containers:
        folder = row.labels.get(FOLDER_LABEL, "")
        if not Path(folder).is_absolute():
            continue
        entry = known.get(folder)
        if not _belongs(row, folder, entry):
            # During a build it is not yet known which container is the new one.
            foreign += [row] if entry is None or not entry.busy else []
        elif folder not in by_folder or (row.running and not by_folder[folder].running):
            by_folder[folder] = row
    for folder, row in by_folder.items():
        if folder not in known:
            name = agent_name(folder)
            known[folder] = Devcontainer(id_of_folder(folder), name, folder, row.labels.get(FILE_LABEL, ""))
    for folder, devcontainer in list(known.items()):
        if folder in by_folder or listing.complete:
            devcontainer.container = by_folder.get(folder)
        if devcontainer.running:
            devcontainer.error = ""
        if (
            listing.complete
            and devcontainer.container is None
            and not devcontainer.is_described
            and not devcontainer.busy
        ):
            del known[folder]
    return foreign


def warn_foreign(rows: Sequence[ContainerRow]) -> list[str]:
    """Return a warning about containers labelled with folders that they do not mount."""
    if not rows:
        return []
    names = ", ".join([*(row.name for row in rows[:MAX_NAMED]), *(["…"] if len(rows) > MAX_NAMED else [])])
    return [f"These containers are labelled as dev containers of folders they do not mount, and get no agent: {names}."]


def _belongs(row: ContainerRow, folder: str, entry: Devcontainer | None) -> bool:
    """Return whether a labelled container belongs to the folder: the agent built it, or it mounts some of the folder.

    The label alone proves little: an image may carry it, and a user who starts that image by hand does not expect a
    sub-agent.
    """
    if entry is not None and entry.built is not None and row.id == entry.built.container_id:
        return True
    return any(mount_exposes(source, folder) for source in row.volumes)


def mount_exposes(source: str, folder: str) -> bool:
    """Return whether a container that mounts `source` of the machine has some of the folder: all of it with its parents
    (a project within a repository), or a part. A remote engine may report the source behind a prefix
    (`/host_mnt/home/…`)."""
    outer, inner = (f"{text.rstrip('/')}/" for text in (source, folder))
    return bool(source) and (inner.startswith(outer) or inner in outer)
