"""Credentials of a request: the places a token is read from, their order, and the refusal texts.

The order is upstream's (docs/protocol/rest.md#authentication). No database: workspace proxies read the same.
`services/access/authentication.py` resolves a token to its owner; `origins.py` checks the page that sent the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie

from coder.domain.access.session_cookies import SESSION_COOKIE as SESSION_COOKIE

SESSION_HEADER = "coder-session-token"
SIGNED_OUT = "You are signed out or your session has expired. Please sign in again to continue."


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials of a request, before any of them is verified."""

    token: str = ""
    from_cookie: bool = False
    remote_ip: str = ""
    user_agent: str = ""

    @classmethod
    def of(cls, headers: Mapping[str, str], query: Mapping[str, list[str]], remote_ip: str = "") -> Credentials:
        """Find the token: cookie before query before headers. `headers` have lower-case names."""
        user_agent = headers.get("user-agent", "")
        cookie = headers.get("cookie", "")
        if SESSION_COOKIE in cookie:
            token = cookie_value(cookie, SESSION_COOKIE)
            if token:
                return cls(token, True, remote_ip, user_agent)
        for token in (
            _first(query, SESSION_COOKIE),
            headers.get(SESSION_HEADER, ""),
            _bearer(headers.get("authorization", "")),
            _first(query, "access_token"),
        ):
            if token:
                return cls(token, False, remote_ip, user_agent)
        return cls("", False, remote_ip, user_agent)


def cookie_value(header: str, name: str) -> str:
    """Return one cookie of a Cookie header; empty when absent or unreadable."""
    for part in header.split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            if not value.startswith('"'):
                return value
            try:
                return SimpleCookie(part)[name].value
            except (CookieError, KeyError):
                return ""
    return ""


def _first(query: Mapping[str, list[str]], name: str) -> str:
    values = query.get(name)
    return values[0] if values else ""


def _bearer(header: str) -> str:
    kind, _, token = header.partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""
