"""JSON shapes of provisioner keys, shared by server and client."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from coder.api.base.struct import ApiStruct
from coder.api.provisioning.provisioners import ProvisionerDaemon
from coder.base.json_types import Json


class CreateProvisionerKeyRequest(ApiStruct):
    name: str
    tags: dict[str, str] | None


class CreateProvisionerKeyResponse(ApiStruct):
    key: str


ProvisionerKeyTags = Json


class ProvisionerKey(ApiStruct):
    id: UUID
    created_at: datetime
    organization: str
    name: str
    tags: ProvisionerKeyTags


class ProvisionerKeyDaemons(ApiStruct):
    key: ProvisionerKey
    daemons: list[ProvisionerDaemon]
