"""JSON shapes of the server's build information, shared by server and client."""

from __future__ import annotations

from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.struct import ApiStruct


class BuildInfoResponse(ApiStruct):
    external_url: str
    version: str
    dashboard_url: str
    telemetry: bool
    workspace_proxy: bool
    agent_api_version: str
    provisioner_api_version: str
    upgrade_message: str
    deployment_id: UUID
    webpush_public_key: str | UnsetType = UNSET
