"""What a request shows to prove who it is, before anything is believed: where a token is looked for, and its sentences.

The order is upstream's (docs/protocol/rest.md#who-asks). No database: workspace proxies read the same. Who is behind a
token is `services/access/authentication.py`; whose page a browser says it asks for, `origins.py`.
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
    """What a request shows, before anything is believed."""

    token: str = ""
    from_cookie: bool = False
    remote_ip: str = ""
    user_agent: str = ""

    @classmethod
    def of(cls, headers: Mapping[str, str], query: Mapping[str, list[str]], remote_ip: str = "") -> Credentials:
        """Finds the token. `headers` have lower-case names. Cookie before query before headers."""
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
    """One cookie of a Cookie header; empty when absent or unreadable."""
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
