"""JSON shapes of notifications and the inbox, shared by server and client."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from coder.api.base.struct import ApiStruct
from coder.base.json_types import Json


class CustomNotificationContent(ApiStruct):
    title: str = ""
    message: str = ""


class CustomNotificationRequest(ApiStruct):
    content: CustomNotificationContent | None = None


class DeleteWebpushSubscription(ApiStruct):
    endpoint: str


class InboxNotificationAction(ApiStruct):
    label: str
    url: str


class InboxNotification(ApiStruct):
    id: UUID
    user_id: UUID
    template_id: UUID
    targets: list[str] | None
    title: str
    content: str
    icon: str
    actions: list[InboxNotificationAction]
    read_at: datetime | None
    created_at: datetime


class GetInboxNotificationResponse(ApiStruct):
    notification: InboxNotification
    unread_count: int


class ListInboxNotificationsResponse(ApiStruct):
    notifications: list[InboxNotification]
    unread_count: int


class NotificationDelivery(ApiStruct):
    """Active delivery methods. Ours, not upstream's, which reports the possible ones."""

    methods: list[str]
    """Configured methods: smtp, webhook and inbox."""


class NotificationMethodsResponse(ApiStruct):
    available: list[str]
    default: str


class NotificationPreference(ApiStruct):
    id: UUID
    disabled: bool
    updated_at: datetime


class NotificationTemplate(ApiStruct):
    id: UUID
    name: str
    title_template: str
    body_template: str
    actions: str
    group: str
    method: str
    kind: str
    enabled_by_default: bool


class PasscodeDelivery(ApiStruct):
    """Delivery of one-time passcodes to users who cannot sign in."""

    available: bool
    """Whether a delivery method for them is configured."""


class NotificationsSettings(ApiStruct):
    notifier_paused: bool


class UpdateNotificationTemplateMethod(ApiStruct):
    method: str | UnsetType = UNSET


class UpdateUserNotificationPreferences(ApiStruct):
    template_disabled_map: dict[str, bool] = msgspec.field(default_factory=dict)


class WebpushMessageAction(ApiStruct):
    label: str
    url: str


class WebpushMessage(ApiStruct):
    icon: str
    title: str
    body: str
    actions: list[WebpushMessageAction]
    data: Json | UnsetType = UNSET
    tag: str | UnsetType = UNSET


class WebpushSubscription(ApiStruct):
    endpoint: str
    auth_key: str
    p256dh_key: str
