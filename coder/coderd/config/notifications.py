"""Settings: notifications and the mail server."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from coder.base.secret import Secret
from coder.coderd.config.groups import EMAIL, EMAIL_AUTH, EMAIL_TLS, INBOX, NOTIFICATIONS, WEBHOOK
from coder.coderd.config.setting import Url, concern, setting


@concern(NOTIFICATIONS)
@dataclass(frozen=True, kw_only=True)
class NotificationSettings:
    """Delivery of notifications."""

    notifications_method: str = setting(
        "smtp",
        "Notifications: Method",
        "Delivery method of messages outside of the dashboard: smtp or webhook.",
        yaml="method",
        path="notifications.method",
    )
    notifications_webhook_endpoint: Url = setting(
        "",
        "Notifications: Webhook: Endpoint",
        "URL to which messages are posted, when the method is webhook.",
        group=WEBHOOK,
        yaml="endpoint",
        path="notifications.webhook.endpoint",
    )
    notifications_inbox_enabled: bool = setting(
        True,
        "Notifications: Inbox: Enabled",
        "Show messages in the dashboard's inbox, too.",
        group=INBOX,
        yaml="enabled",
        path="notifications.inbox.enabled",
    )
    notifications_max_send_attempts: int = setting(
        5,
        "Notifications: Max Send Attempts",
        "Number of delivery attempts before a message fails.",
        yaml="maxSendAttempts",
        path="notifications.max_send_attempts",
    )
    notifications_retry_interval: timedelta = setting(
        timedelta(minutes=5),
        "Notifications: Retry Interval",
        "Wait between two attempts.",
        yaml="retryInterval",
        path="notifications.retry_interval",
        hidden=True,
    )
    notifications_dispatch_timeout: timedelta = setting(
        timedelta(minutes=1),
        "Notifications: Dispatch Timeout",
        "Time after which an attempt to send a message fails.",
        yaml="dispatchTimeout",
        path="notifications.dispatch_timeout",
    )
    notifications_store_sync_interval: timedelta = setting(
        timedelta(seconds=2),
        "Notifications: Store Sync Interval",
        "Without effect: results are written immediately.",
        yaml="storeSyncInterval",
        path="notifications.sync_interval",
        hidden=True,
    )
    notifications_store_sync_buffer_size: int = setting(
        50,
        "Notifications: Store Sync Buffer Size",
        "Without effect: results are written immediately.",
        yaml="storeSyncBufferSize",
        path="notifications.sync_buffer_size",
        hidden=True,
    )
    notifications_lease_period: timedelta = setting(
        timedelta(minutes=2),
        "Notifications: Lease Period",
        "Time that one replica may try a message before another one retries it.",
        yaml="leasePeriod",
        path="notifications.lease_period",
        hidden=True,
    )
    notifications_lease_count: int = setting(
        20,
        "Notifications: Lease Count",
        "Without effect: messages are leased one at a time.",
        yaml="leaseCount",
        path="notifications.lease_count",
        hidden=True,
    )
    notifications_fetch_interval: timedelta = setting(
        timedelta(seconds=15),
        "Notifications: Fetch Interval",
        "Interval of polls for messages, in addition to notices.",
        yaml="fetchInterval",
        path="notifications.fetch_interval",
        hidden=True,
    )


@concern(EMAIL)
@dataclass(frozen=True, kw_only=True)
class EmailSettings:
    """The mail server."""

    email_from: str = setting(
        "",
        "Email: From Address",
        "Sender of e-mails, like coder@example.com.",
        yaml="from",
        path="notifications.email.from",
    )
    email_smarthost: str = setting(
        "",
        "Email: Smarthost",
        "Mail server that sends the e-mails, host:port.",
        yaml="smarthost",
        path="notifications.email.smarthost",
    )
    email_hello: str = setting(
        "localhost",
        "Email: Hello",
        "Name by which this server introduces itself to the mail server.",
        yaml="hello",
        path="notifications.email.hello",
    )
    email_force_tls: bool = setting(
        False,
        "Email: Force TLS",
        "Speak TLS to the mail server from the first byte.",
        yaml="forceTLS",
        path="notifications.email.force_tls",
        shown="false",
    )
    email_auth_username: str = setting(
        "",
        "Email Auth: Username",
        "User name to sign in with at the mail server.",
        group=EMAIL_AUTH,
        yaml="username",
        path="notifications.email.auth.username",
    )
    email_auth_password: Secret = setting(
        Secret(""),
        "Email Auth: Password",
        "Password to sign in with at the mail server.",
        group=EMAIL_AUTH,
        path="notifications.email.auth.password",
    )
    email_auth_password_file: str = setting(
        "",
        "Email Auth: Password File",
        "File with the password for the mail server.",
        group=EMAIL_AUTH,
        yaml="passwordFile",
        path="notifications.email.auth.password_file",
    )
    email_tls_starttls: bool = setting(
        False,
        "Email TLS: StartTLS",
        "Upgrade the connection to the mail server to TLS (STARTTLS).",
        group=EMAIL_TLS,
        yaml="startTLS",
        path="notifications.email.tls.start_tls",
    )
    email_tls_skip_verify: bool = setting(
        False,
        "Email TLS: Skip Certificate Verification (Insecure)",
        "Accept any certificate of the mail server.",
        env="CODER_EMAIL_TLS_SKIPVERIFY",
        group=EMAIL_TLS,
        yaml="insecureSkipVerify",
        path="notifications.email.tls.insecure_skip_verify",
    )
    email_tls_ca_cert_file: str = setting(
        "",
        "Email TLS: Certificate Authority File",
        "PEM file of the authorities that the mail server's certificate is checked against.",
        env="CODER_EMAIL_TLS_CACERTFILE",
        group=EMAIL_TLS,
        yaml="caCertFile",
        path="notifications.email.tls.ca_file",
    )
    email_tls_server_name: str = setting(
        "",
        "Email TLS: Server Name",
        "Name the mail server's certificate must have.",
        env="CODER_EMAIL_TLS_SERVERNAME",
        group=EMAIL_TLS,
        yaml="serverName",
        path="notifications.email.tls.server_name",
    )
    email_tls_cert_file: str = setting(
        "",
        "Email TLS: Certificate File",
        "PEM file of a certificate to show to the mail server.",
        env="CODER_EMAIL_TLS_CERTFILE",
        group=EMAIL_TLS,
        yaml="certFile",
        path="notifications.email.tls.cert_file",
    )
    email_tls_cert_key_file: str = setting(
        "",
        "Email TLS: Certificate Key File",
        "PEM file of the private key of that certificate.",
        env="CODER_EMAIL_TLS_CERTKEYFILE",
        group=EMAIL_TLS,
        yaml="certKeyFile",
        path="notifications.email.tls.key_file",
    )
    email_auth_identity: str = setting(
        "",
        "Email Auth: Identity",
        "Identity to act for at the mail server, if it is not the authenticated user.",
        group=EMAIL_AUTH,
        yaml="identity",
        path="notifications.email.auth.identity",
    )
