"""What can go wrong between us and a server."""

from __future__ import annotations

from typing import Any

from coder.base.errors import CoderError


class NetError(CoderError):
    """No usable connection. Codes: `unreachable`, `tls`, `proxy`, `timeout`, `protocol`."""


_NEXT_STEPS = {
    401: "Sign in with `coder login <url>`; a token given by flag or environment may be mistyped or expired.",
    403: "Ask an administrator of the deployment for the role this needs.",
    404: "Check the spelling, and that it was shared with you.",
    429: "Wait a minute and try again.",
}
"What somebody at a terminal can do about an answer that says no."


class HttpError(CoderError):
    """The server answered with an error status.

    `message`, `detail` and `validations` are those of the API's error envelope where the body holds one.
    """

    def __init__(
        self,
        status: int,
        message: str,
        detail: str = "",
        validations: list[dict[str, Any]] | None = None,
        *,
        is_enveloped: bool = False,
    ) -> None:
        super().__init__(f"http_{status}", message, _NEXT_STEPS.get(status, ""))
        self.status = status
        self.detail = detail
        self.validations = validations or []
        self.is_enveloped = is_enveloped
        "The body was the API's own error: nothing on the way said it."

    def __str__(self) -> str:
        parts = [self.message or f"HTTP {self.status}"]
        parts += [f"{item.get('field', '')}: {item.get('detail', '')}" for item in self.validations]
        if self.detail:
            parts.append(self.detail)
        return "; ".join(parts)


def error_from_body(status: int, body: bytes) -> HttpError:
    """Reads the JSON error envelope if there is one; a short text body becomes the message."""
    import json

    try:
        value = json.loads(body)
    except ValueError:
        value = None
    if isinstance(value, dict) and isinstance(value.get("message"), str):
        validations = value.get("validations")
        return HttpError(
            status,
            value["message"],
            str(value.get("detail") or ""),
            [item for item in validations if isinstance(item, dict)] if isinstance(validations, list) else [],
            is_enveloped=True,
        )
    text = body[:200].decode("utf-8", "replace").strip()
    return HttpError(status, f"unexpected status {status}" + (f": {text}" if text else ""))
