"""Errors between this process and a server."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from coder.base.clock import Clock, SystemClock
from coder.base.errors import CoderError, causes
from coder.base.json_types import Json
from coder.base.quoted import cut


class NetError(CoderError):
    """No usable connection. Codes: `unreachable`, `tls`, `tls_files`, `proxy`, `timeout`, `protocol`."""


class UnansweredUpgrade(NetError):  # noqa: N818 - named for what happened
    """The server accepted a connection and did not answer an upgrade in time."""


def not_an_answer(content_type: str) -> NetError:
    """Return the error for a success whose body is not the API's: a captive portal, a proxy's page, another program."""
    content = "a web page" if content_type.startswith("text/html") else "something else"
    hint = "Is the URL that of a Coder deployment, and is there a proxy or sign-in page in between?"
    return NetError("protocol", f"the server answered with {content} where the API answers with JSON", hint)


def proxy_refusal(proxy: str, target: str, status_line: str) -> NetError:
    """Return the error for a proxy that did not accept CONNECT; `said` is its status line."""
    requires_login = " 407" in f" {status_line}"
    hint = (
        "Put user and password into the proxy URL: http://user:password@proxy:port, special characters as %40."
        if requires_login
        else "Ask the administrator of the proxy to allow CONNECT there, or add the host to NO_PROXY."
    )
    return NetError("proxy", f"the proxy {proxy} refused the connection to {target} ({status_line})", hint)


_NOT_VALID_NOW = {
    9: "The certificate is not valid yet by the clock of this machine: set the clock.",
    10: "Check the clock of this machine. If it is right, the certificate has expired, and the administrator of the "
    "server has to renew it.",
}
"""OpenSSL's codes for certificates that are not valid now (X509_V_ERR_CERT_NOT_YET_VALID, _HAS_EXPIRED), and the
remedy: a machine whose clock says 1970 trusts no certificate, whatever its authority."""


def tls_failure(host: str, error: BaseException, clock: Clock | None = None) -> NetError | None:
    """Describe a TLS failure; return None when no cause of `error` is about TLS."""
    import ssl

    cause = next((each for each in causes(error, with_context=True) if isinstance(each, ssl.SSLError)), None)
    if cause is None:
        return None
    if isinstance(cause, ssl.SSLCertVerificationError) and cause.verify_code in _NOT_VALID_NOW:
        now = (clock or SystemClock()).now()
        return NetError(
            "tls",
            f"the certificate of {host} does not hold at {now:%Y-%m-%d %H:%M} UTC, the time of this machine "
            f"({cause.verify_message})",
            _NOT_VALID_NOW[cause.verify_code],
        )
    if isinstance(cause, ssl.SSLCertVerificationError):
        return NetError(
            "tls",
            f"the certificate of {host} is not trusted ({cause.verify_message})",
            "For a private certificate authority set --client-tls-ca-file or SSL_CERT_FILE; "
            "a proxy that inspects TLS has one too.",
        )
    reason = (cause.reason or "").upper()
    if "CERTIFICATE_REQUIRED" in reason or "HANDSHAKE_FAILURE" in reason or "BAD_CERTIFICATE" in reason:
        return NetError(
            "tls",
            f"{host} requires a valid client certificate",
            "Set --client-tls-cert-file and --client-tls-key-file.",
        )
    if "WRONG_VERSION_NUMBER" in reason or "HTTP_REQUEST" in reason:
        return NetError("tls", f"{host} does not use TLS on this port", "Is this an HTTPS address and port?")
    return NetError("tls", f"no secure connection to {host}", "Is this an HTTPS address and port?")


_NEXT_STEPS = {
    401: "Sign in with `coder login <url>`; a token given by flag or environment may be mistyped or expired.",
    403: "Ask an administrator of the deployment for the role this needs.",
    404: "Check the spelling, and that it was shared with you.",
    429: "Wait a minute and try again.",
}
"Advice for a person at a terminal, by the status of a refusal."


NOT_THE_API = "The answer is not the server's own: check the URL, and the proxies and sign-in pages in between."
"Advice for an answer without the API's error format."


class HttpError(CoderError):
    """The server answered with an error status.

    `message`, `detail` and `validations` are those of the API's error envelope where the body holds one.
    """

    def __init__(
        self,
        status: int,
        message: str,
        detail: str = "",
        validations: Sequence[Mapping[str, Json]] | None = None,
        *,
        is_enveloped: bool = False,
    ) -> None:
        super().__init__(f"http_{status}", message, _NEXT_STEPS.get(status, ""))
        self.status = status
        self.detail = detail
        self.validations = validations or []
        self.retry_after = 0.0
        "Seconds after which the server wants to be asked again (`Retry-After`); 0 if it did not say."
        self.is_enveloped = is_enveloped
        "Whether the body was the API's own error: the server itself sent it, no proxy."
        self.method = self.path = ""
        "Method and path of the refused request; empty if the caller does not know them."

    def __str__(self) -> str:
        parts = [self.message or f"HTTP {self.status}"]
        parts += [f"{item.get('field', '')}: {item.get('detail', '')}" for item in self.validations]
        if self.detail:
            parts.append(self.detail)
        return "; ".join(parts)


def is_own_refusal(error: BaseException) -> bool:
    """Return whether the server itself refused, in the API's format. Other answers may be a middlebox's, while the
    server restarts, or tell that its database is away: they say nothing about the request."""
    return isinstance(error, HttpError) and error.is_enveloped and error.status < 500


_OUTAGES = frozenset({502, 503, 504})


def is_outage(error: BaseException) -> bool:
    """Return whether the server, its database or the network is away, so that the same request may succeed soon."""
    if isinstance(error, HttpError):
        return error.status in _OUTAGES
    return isinstance(error, NetError) and error.code in {"unreachable", "timeout"}


def refused_request(method: str, path: str, status: int, body: bytes, retry_after: str = "") -> HttpError:
    """Return the error for the answer to a request; `path` may have a query."""
    error = error_from_body(status, body, retry_after)
    error.method, error.path = method, path.partition("?")[0]
    return error


MAX_VALIDATIONS = 100
"Rejected fields (ours) of an answer that are kept."
LONGEST_RETRY_AFTER = 120.0
"""Seconds: what answers may be a middlebox, and a day would be too long."""


def requested_delay(error: BaseException) -> float:
    """Return the seconds for which a server wants no other attempt, lengthened by up to a fifth, so that callers with
    the same answer do not return together. 0 if the error, its causes and members do not say."""
    if isinstance(error, BaseExceptionGroup):
        return max(map(requested_delay, error.exceptions))
    import random  # every command loads this module, and few wait

    asked = max((cause.retry_after for cause in causes(error) if isinstance(cause, HttpError)), default=0.0)
    return min(asked, LONGEST_RETRY_AFTER) * random.uniform(1.0, 1.2)


def error_from_body(status: int, body: bytes, retry_after: str = "") -> HttpError:
    """Read the JSON error envelope if there is one; a short text body becomes the message. `retry_after` is the header
    of that name; its form with a date is ignored."""
    error = _error_from_body(status, body)
    if re.fullmatch("[0-9]{1,9}", retry_after.strip()):
        error.retry_after = float(retry_after)
    return error


def _cut_texts(item: Mapping[str, Json]) -> dict[str, Json]:
    return {name: cut(value) if isinstance(value, str) else value for name, value in item.items()}


def _error_from_body(status: int, body: bytes) -> HttpError:
    import json

    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and isinstance(value.get("message"), str):
        validations = value.get("validations")
        return HttpError(
            status,
            cut(value["message"]),
            cut(str(value.get("detail") or "")),
            [_cut_texts(item) for item in validations[:MAX_VALIDATIONS] if isinstance(item, dict)]
            if isinstance(validations, list)
            else [],
            is_enveloped=True,
        )
    text = body[:200].decode("utf-8", "replace").strip()
    error = HttpError(status, f"unexpected status {status}" + (f": {text}" if text else ""))
    error.hint = NOT_THE_API
    return error
