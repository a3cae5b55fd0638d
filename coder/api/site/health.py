"""JSON shapes of the health report, shared by server and client."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import UNSET, UnsetType

from coder.api.base.struct import ApiStruct
from coder.api.provisioning.provisioners import ProvisionerDaemon
from coder.base.json_types import Json

HealthCode = Literal[
    "EACS03",
    "EACS02",
    "EACS04",
    "EACS01",
    "EDERP03",
    "EDERP01",
    "EDERP02",
    "EDB01",
    "EDB02",
    "EPD03",
    "EPD02",
    "EPD01",
    "EWP02",
    "EWP04",
    "EWP01",
    "EUNKNOWN",
    "EWS01",
    "EWS02",
    "EWS03",
]

HealthSection = Literal["AccessURL", "DERP", "Database", "ProvisionerDaemons", "Websocket", "WorkspaceProxy"]

HealthSeverity = Literal["error", "ok", "warning"]


class HealthMessage(ApiStruct):
    code: HealthCode
    message: str


class AccessURLReport(ApiStruct):
    access_url: str
    dismissed: bool
    healthy: bool
    healthz_response: str
    reachable: bool
    severity: HealthSeverity
    status_code: int
    warnings: list[HealthMessage]
    error: str | UnsetType = UNSET


class DERPConfig(ApiStruct):
    block_direct: bool
    force_websockets: bool
    url: str
    path: str


class DERPServerConfig(ApiStruct):
    enable: bool
    region_id: int
    region_code: str
    region_name: str
    stun_addresses: str
    relay_url: str


class DERP(ApiStruct):
    server: DERPServerConfig
    config: DERPConfig


class NetcheckReport(ApiStruct):
    UDP: bool
    IPv6: bool
    IPv4: bool
    IPv6CanSend: bool
    IPv4CanSend: bool
    OSHasIPv6: bool
    ICMPv4: bool
    MappingVariesByDestIP: bool | None
    HairPinning: bool | None
    UPnP: bool | None
    PMP: bool | None
    PCP: bool | None
    PreferredDERP: int
    RegionLatency: dict[str, int] | None
    RegionV4Latency: dict[str, int] | None
    RegionV6Latency: dict[str, int] | None
    GlobalV4: str
    GlobalV6: str
    CaptivePortal: bool | None


class DERPHealthReport(ApiStruct):
    dismissed: bool
    healthy: bool
    netcheck_logs: list[str]
    regions: dict[str, DERPRegionReport]
    severity: HealthSeverity
    warnings: list[HealthMessage]
    error: str | UnsetType = UNSET
    netcheck: NetcheckReport | UnsetType = UNSET
    netcheck_err: str | UnsetType = UNSET


class STUNReport(ApiStruct):
    Enabled: bool
    CanSTUN: bool
    Error: str | None


class ServerInfoMessage(ApiStruct):
    TokenBucketBytesPerSecond: int
    TokenBucketBytesBurst: int


class TailDERPNode(ApiStruct):
    Name: str
    RegionID: int
    HostName: str
    CanPort80: bool | UnsetType = UNSET
    CertName: str | UnsetType = UNSET
    DERPPort: int | UnsetType = UNSET
    ForceHTTP: bool | UnsetType = UNSET
    IPv4: str | UnsetType = UNSET
    IPv6: str | UnsetType = UNSET
    InsecureForTests: bool | UnsetType = UNSET
    STUNOnly: bool | UnsetType = UNSET
    STUNPort: int | UnsetType = UNSET
    STUNTestIP: str | UnsetType = UNSET


class DERPNodeReport(ApiStruct):
    healthy: bool
    severity: HealthSeverity
    warnings: list[HealthMessage]
    node: TailDERPNode | None
    node_info: ServerInfoMessage
    can_exchange_messages: bool
    round_trip_ping: str
    round_trip_ping_ms: int
    uses_websocket: bool
    client_logs: list[list[str]]
    client_errs: list[list[str]]
    stun: STUNReport
    error: str | UnsetType = UNSET


class TailDERPRegion(ApiStruct):
    EmbeddedRelay: bool
    RegionID: int
    RegionCode: str
    RegionName: str
    Nodes: list[TailDERPNode]
    Avoid: bool | UnsetType = UNSET


class DERPRegionReport(ApiStruct):
    healthy: bool
    severity: HealthSeverity
    warnings: list[HealthMessage]
    region: TailDERPRegion | None
    node_reports: list[DERPNodeReport]
    error: str | UnsetType = UNSET


class DatabaseReport(ApiStruct):
    dismissed: bool
    healthy: bool
    latency: str
    latency_ms: float
    reachable: bool
    severity: HealthSeverity
    threshold_ms: int
    warnings: list[HealthMessage]
    error: str | UnsetType = UNSET


class HealthSettings(ApiStruct):
    dismissed_healthchecks: list[HealthSection]


class ProvisionerDaemonsReportItem(ApiStruct):
    provisioner_daemon: ProvisionerDaemon
    warnings: list[HealthMessage]


class ProvisionerDaemonsReport(ApiStruct):
    dismissed: bool
    items: list[ProvisionerDaemonsReportItem]
    severity: HealthSeverity
    warnings: list[HealthMessage]
    error: str | UnsetType = UNSET


class WebsocketReport(ApiStruct):
    body: str
    code: int
    dismissed: bool
    healthy: bool
    severity: HealthSeverity
    warnings: list[HealthMessage]
    error: str | UnsetType = UNSET


class WorkspaceProxyReport(ApiStruct):
    dismissed: bool
    healthy: bool
    severity: HealthSeverity
    warnings: list[HealthMessage]
    workspace_proxies: Json
    error: str | UnsetType = UNSET


class HealthcheckReport(ApiStruct):
    time: datetime
    healthy: bool
    severity: HealthSeverity
    derp: DERPHealthReport
    access_url: AccessURLReport
    websocket: WebsocketReport
    database: DatabaseReport
    workspace_proxy: WorkspaceProxyReport
    provisioner_daemons: ProvisionerDaemonsReport
    coder_version: str


class ProxyHealthReport(ApiStruct):
    errors: list[str]
    warnings: list[str]


class UpdateHealthSettings(ApiStruct):
    dismissed_healthchecks: list[HealthSection]
