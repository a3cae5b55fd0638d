"""JSON shapes of the possible remains of an abandoned workspace. Ours, not upstream's."""

from __future__ import annotations

from uuid import UUID

from coder.api.base.struct import ApiStruct


class RemainingResource(ApiStruct):
    address: str
    type: str
    name: str
    provider: str
    id: str


class WorkspaceInventory(ApiStruct):
    workspace_id: UUID
    readable: bool
    """Whether the state could be parsed."""
    resources: list[RemainingResource]
