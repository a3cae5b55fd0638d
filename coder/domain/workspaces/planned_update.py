"""What an update would do to a workspace, derived from the changes that Terraform plans.

The plan starts the new version against the last build's state. An update of a running workspace stops it first, so that
resources which the template has only while a workspace runs are destroyed and created again, whatever the plan says.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

PlannedAction = Literal["keep", "create", "update", "replace", "restart", "delete", "forget", "unknown"]
"""`restart`: stopped with the workspace and created again. `forget`: left in place, no longer managed."""
DiskVerdict = Literal["kept", "lost", "none", "unknown"]
ACTIONS: tuple[PlannedAction, ...] = ("keep", "create", "update", "replace", "restart", "delete", "forget", "unknown")

_DISK_WORDS = frozenset(
    {"volume", "volumes", "disk", "disks", "ebs", "efs", "pvc", "pv", "nfs", "filesystem", "filestore"}
)
_DISK_PARTS = ("persistent_volume", "file_system", "file_storage", "storage_volume", "storage_share")
_NOT_A_DISK = ("attach", "association", "policy", "mount_target", "access_point", "backup", "snapshot", "encryption")
"""Words of resources about disks. Attachments exist only while a workspace runs, without the data being lost."""
_WORD = re.compile(r"[a-z0-9]+")
_LOSING: frozenset[PlannedAction] = frozenset({"replace", "delete", "restart"})


@dataclass(frozen=True, slots=True)
class PlannedAttribute:
    """Attribute that a plan changes. A value is "" when it is not shown."""

    path: str
    before: str
    after: str
    forces_replacement: bool


@dataclass(frozen=True, slots=True)
class PlannedResource:
    """Resource of a plan."""

    address: str
    type: str
    name: str
    action: PlannedAction
    attributes: Sequence[PlannedAttribute] = ()

    @property
    def is_disk(self) -> bool:
        return is_disk(self.type)

    @property
    def is_agent(self) -> bool:
        return self.type == "coder_agent"

    @property
    def is_internal(self) -> bool:
        """Whether the resource exists in coder's provider only, and costs nothing to replace."""
        return self.type.startswith("coder_")


def is_disk(resource_type: str) -> bool:
    """Return whether resources of this type hold data, judged by the words of the type's name."""
    if any(part in resource_type for part in _NOT_A_DISK):
        return False
    words = set(_WORD.findall(resource_type.replace("_", " ")))
    return bool(words & _DISK_WORDS) or any(part in resource_type for part in _DISK_PARTS)


def stopped_first(
    resources: Sequence[PlannedResource], *, is_running: bool, persistent: Collection[tuple[str, str]] | None
) -> list[PlannedResource]:
    """Return the resources with the effect of the stop that precedes the update of a running workspace.

    `persistent` has (type, name) of the resources that the current version keeps while a workspace is stopped; None
    when that is not known.
    """
    if not is_running or persistent is None:
        return list(resources)
    return [
        replace(resource, action="restart")
        if resource.action in {"keep", "update", "replace"}
        and not resource.is_internal
        and (resource.type, resource.name) not in persistent
        else resource
        for resource in resources
    ]


def disk_verdict(resources: Sequence[PlannedResource], *, is_complete: bool) -> DiskVerdict:
    """Return what becomes of the disks. A plan that is not complete may still show that one is lost."""
    disks = [resource for resource in resources if resource.is_disk]
    if any(disk.action in _LOSING for disk in disks):
        return "lost"
    if not is_complete or any(disk.action == "unknown" for disk in disks):
        return "unknown"
    return "kept" if any(disk.action in {"keep", "update", "forget"} for disk in disks) else "none"


def count_actions(resources: Sequence[PlannedResource]) -> dict[PlannedAction, int]:
    """Return the number of resources by action, without those of coder's provider."""
    counts = dict.fromkeys(ACTIONS, 0)
    for resource in resources:
        if not resource.is_internal:
            counts[resource.action] += 1
    return counts


_NOT_KNOWN = (
    "It is not known which resources are kept, replaced or destroyed: the provisioner that made the plan does not "
    "report changes."
)
_DISK_SENTENCES: dict[DiskVerdict, str] = {
    "kept": "Your disk stays.",
    "none": "No disk of the workspace is a resource of its own: data inside replaced machines is lost.",
    "unknown": "It is not known whether your disk stays.",
    "lost": "Your disk does not stay",
}
_COUNTED: tuple[tuple[PlannedAction, str], ...] = (
    ("keep", "kept"),
    ("update", "changed in place"),
    ("restart", "stopped and created again"),
    ("replace", "replaced"),
    ("delete", "destroyed"),
    ("create", "created"),
    ("forget", "no longer managed"),
    ("unknown", "with an unknown change"),
)


def explain(resources: Sequence[PlannedResource] | None, *, is_complete: bool, is_running: bool) -> list[str]:
    """Return the plan in plain sentences, the most important first. None: the plan's changes are not known."""
    if resources is None:
        return [_NOT_KNOWN, _DISK_SENTENCES["unknown"], *_agent_sentences((), is_running=is_running)]
    return [
        _disk_sentence(resources, is_complete=is_complete),
        _count_sentence(resources, is_complete=is_complete),
        *_agent_sentences(resources, is_running=is_running),
    ]


def _disk_sentence(resources: Sequence[PlannedResource], *, is_complete: bool) -> str:
    verdict = disk_verdict(resources, is_complete=is_complete)
    if verdict != "lost":
        return _DISK_SENTENCES[verdict]
    lost = [resource.address for resource in resources if resource.is_disk and resource.action in _LOSING]
    return f"{_DISK_SENTENCES['lost']}: {', '.join(lost)}."


def _count_sentence(resources: Sequence[PlannedResource], *, is_complete: bool) -> str:
    counts = count_actions(resources)
    parts = [f"{counts[action]} {words}" for action, words in _COUNTED if counts[action]]
    if not parts:
        return "No resources change." if is_complete else "The plan has more resources than can be shown."
    more = "" if is_complete else "; the plan has more resources than can be shown"
    return f"Resources: {', '.join(parts)}{more}."


def _agent_sentences(resources: Sequence[PlannedResource], *, is_running: bool) -> list[str]:
    if is_running:
        return ["The update stops the workspace first: its agents restart, and open sessions end."]
    agents = [resource for resource in resources if resource.is_agent]
    return ["The workspace is stopped: the update starts it, and its agents with it."] if agents else []
