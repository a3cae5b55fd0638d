"""Reasons for a failed e-mail: what the mail server or this machine refused, and which setting is concerned.

The log has the reason, and administrators read it there after `coder notifications test`.
"""

from __future__ import annotations

import smtplib
import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coder.coderd.config.settings import ServerConfig

LIMIT = 500
"""Characters of a reason."""


def explain_mail_fault(error: OSError | smtplib.SMTPException | ValueError, config: ServerConfig) -> str:
    """Return one line for the log: what failed, and the setting to check if the cause is usually a setting."""
    # A reply's control characters would act on the terminal of an administrator who reads the log.
    return "".join(char if char.isprintable() else "\ufffd" for char in _explain(error, config)[:LIMIT])


def _explain(error: Exception, config: ServerConfig) -> str:
    server = f"the mail server {config.email_smarthost}"
    match error:
        case smtplib.SMTPAuthenticationError():
            return f"{server} rejected the sign-in of {config.email_auth_username}: {_reply(error)}"
        case smtplib.SMTPResponseException():
            return f"{server} refused: {_reply(error)}"
        case smtplib.SMTPRecipientsRefused(recipients=recipients):
            replies = (f"{code} {_text(text)}" for code, text in recipients.values())
            return f"{server} refused the recipient: {'; '.join(replies)}"
        case smtplib.SMTPNotSupportedError() if "STARTTLS" in str(error):
            return f"{server} does not offer STARTTLS: check CODER_EMAIL_TLS_STARTTLS and the port"
        case smtplib.SMTPNotSupportedError() if config.email_auth_username:
            return f"{server} offers no sign-in; most do so only with TLS: check CODER_EMAIL_TLS_STARTTLS ({error})"
        case smtplib.SMTPServerDisconnected():
            return f"{server} closed the connection ({error}); is TLS right for this port?"
        case smtplib.SMTPException():
            return f"{server} refused: {error}"
        case ssl.SSLCertVerificationError():
            name = config.email_smarthost
            return (
                f"the certificate of {name} is not trusted ({error.verify_message}): check CODER_EMAIL_TLS_CACERTFILE"
            )
        case ssl.SSLError():
            reason = (getattr(error, "reason", "") or "no TLS").replace("_", " ").lower()
            return f"no secure connection to {server} ({reason}): is CODER_EMAIL_FORCE_TLS right for this port?"
        case OSError():
            return f"{server} cannot be reached: {error.strerror or error}"
    return f"the e-mail could not be written: {error}"


def _reply(error: smtplib.SMTPResponseException) -> str:
    return f"{error.smtp_code} {_text(error.smtp_error)}"


def _text(reply: bytes | str) -> str:
    """Return a reply of one or more lines as one line."""
    return " ".join((reply.decode(errors="replace") if isinstance(reply, bytes) else reply).split())
