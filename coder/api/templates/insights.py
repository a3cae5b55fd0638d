"""JSON shapes of insights, shared by server and client."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.struct import ApiStruct
from coder.api.templates.parameters import TemplateParameterUsage
from coder.api.templates.templates import TemplateAppUsage

InsightsReportInterval = Literal["day", "week"]


class ConnectionLatency(ApiStruct):
    p50: float
    p95: float


class DAUEntry(ApiStruct):
    date: str
    """Day, such as `2026-11-21`."""
    amount: int


class DAUsResponse(ApiStruct):
    entries: list[DAUEntry]
    tz_hour_offset: int


class TemplateInsightsIntervalReport(ApiStruct):
    start_time: datetime
    end_time: datetime
    template_ids: list[UUID]
    interval: InsightsReportInterval
    active_users: int


class TemplateInsightsReport(ApiStruct):
    start_time: datetime
    end_time: datetime
    template_ids: list[UUID]
    active_users: int
    apps_usage: list[TemplateAppUsage]
    parameters_usage: list[TemplateParameterUsage]


class TemplateInsightsResponse(ApiStruct):
    interval_reports: list[TemplateInsightsIntervalReport] | UnsetType = UNSET
    report: TemplateInsightsReport | UnsetType = UNSET


class UserActivity(ApiStruct):
    template_ids: list[UUID]
    user_id: UUID
    username: str
    avatar_url: str
    seconds: int


class UserActivityInsightsReport(ApiStruct):
    start_time: datetime
    end_time: datetime
    template_ids: list[UUID]
    users: list[UserActivity]


class UserActivityInsightsResponse(ApiStruct):
    report: UserActivityInsightsReport


class UserLatency(ApiStruct):
    template_ids: list[UUID]
    user_id: UUID
    username: str
    avatar_url: str
    latency_ms: ConnectionLatency


class UserLatencyInsightsReport(ApiStruct):
    start_time: datetime
    end_time: datetime
    template_ids: list[UUID]
    users: list[UserLatency]


class UserLatencyInsightsResponse(ApiStruct):
    report: UserLatencyInsightsReport


class UserStatusChangeCount(ApiStruct):
    date: datetime
    count: int
