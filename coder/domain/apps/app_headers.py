"""Headers that pass between a browser and an application, and their form; pure.

Requests lose headers of a single connection (RFC 9110 section 7.6.1) and our own: our cookies and tokens must not reach
the application. Responses lose headers with effects beyond the application. Header names are bytes in lower case.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import parse_qsl, unquote_plus, urlencode

from coder.domain.access.session_cookies import HOST_PREFIX, SESSION_COOKIE
from coder.domain.access.session_cookies import PATH_SESSION_COOKIE as PATH_SESSION_COOKIE
from coder.domain.access.session_cookies import SUBDOMAIN_SESSION_COOKIE as SUBDOMAIN_SESSION_COOKIE

Headers = Sequence[tuple[bytes, bytes]]

SIGNED_TOKEN_COOKIE = "coder_signed_app_token"  # noqa: S105 - a name
SIGNED_TOKEN_QUERY = "coder_signed_app_token_23db1dde"  # noqa: S105
API_KEY_QUERY = "coder_application_connect_api_key_35e783"

_OUR_COOKIES = frozenset(
    {
        SESSION_COOKIE,
        PATH_SESSION_COOKIE,
        SIGNED_TOKEN_COOKIE,
        "oauth_state",
        "oauth_redirect",
        "oauth_pkce_verifier",
        "coder_oauth_convert_jwt",
    }
)
_OUR_QUERY = frozenset({SESSION_COOKIE, SIGNED_TOKEN_QUERY, API_KEY_QUERY})
_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"proxy-connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"te",
        b"transfer-encoding",
        b"upgrade",
    }
)
_OUR_REQUEST_HEADERS = frozenset({b"coder-session-token", b"coder-external-proxy-token"})
_WHOLE_ORIGIN = frozenset(
    {
        # Headers that apply to the whole origin, which for path applications is the dashboard's.
        b"strict-transport-security",
        b"service-worker-allowed",
        b"clear-site-data",
        b"alt-svc",
        b"nel",
        b"report-to",
        b"reporting-endpoints",
        b"public-key-pins",
        b"origin-agent-cluster",
        b"accept-ch",
        b"critical-ch",
        b"expect-ct",
        b"set-login",
        b"use-as-dictionary",
        # Device bound sessions: the browser would delay the dashboard's requests to refresh cookies that it names.
        b"secure-session-registration",
        b"secure-session-challenge",
        b"sec-session-registration",
        b"sec-session-challenge",
    }
)
_WEBSOCKET_NAMES = {
    # Some servers compare case although RFC 9110 says not to: RFC 6455's own spelling is the safe one.
    b"sec-websocket-key": b"Sec-WebSocket-Key",
    b"sec-websocket-version": b"Sec-WebSocket-Version",
    b"sec-websocket-protocol": b"Sec-WebSocket-Protocol",
    b"sec-websocket-extensions": b"Sec-WebSocket-Extensions",
    b"sec-websocket-accept": b"Sec-WebSocket-Accept",
}


def first(headers: Headers, name: bytes) -> str:
    """Return the first value of a header; "" without one."""
    return next((value.decode("latin-1") for key, value in headers if key == name), "")


def joined(headers: Headers, name: bytes, separator: str = ", ") -> str:
    """Return all values of a header as one."""
    return separator.join(value.decode("latin-1") for key, value in headers if key == name)


def has_token(headers: Headers, name: bytes, token: str) -> bool:
    """Return whether `token` is a comma-separated word of a header."""
    return token in {word.strip().lower() for word in joined(headers, name).split(",")}


def wants_upgrade(headers: Headers) -> bool:
    return has_token(headers, b"connection", "upgrade") and any(name == b"upgrade" for name, _ in headers)


def _is_chunked(headers: Headers) -> bool:
    return any(name == b"transfer-encoding" for name, _ in headers)


def _connection_bound(headers: Headers) -> frozenset[bytes]:
    """Return the hop-by-hop names: the fixed ones and those `Connection` lists. A sender cannot remove the headers for
    the destination and the framing of a message. A length next to a transfer coding may be an attack (RFC 9112 section
    6.1).
    """
    named = {word.strip().lower().encode("latin-1") for word in joined(headers, b"connection").split(",")}
    named -= {b"", b"close", b"host", b"content-length"}
    return _HOP_BY_HOP | named | ({b"content-length"} if _is_chunked(headers) else {b"trailer"})


def is_our_cookie(name: str, *, dashboard_origin: bool) -> bool:
    """Return whether a cookie of that name is Coder's. On hosts of their own applications may have a `csrf_token`
    themselves."""
    if dashboard_origin and name == "csrf_token":
        return True
    name = name.removeprefix(HOST_PREFIX)
    return name in _OUR_COOKIES or name.startswith(SUBDOMAIN_SESSION_COOKIE)


def carries_ours(headers: Headers) -> bool:
    """Return whether a request carries one of our cookies, which browsers add for any page."""
    pairs = joined(headers, b"cookie", "; ").split(";")
    return any(is_our_cookie(pair.partition("=")[0].strip(), dashboard_origin=False) for pair in pairs)


def stripped_cookies(header: str, *, dashboard_origin: bool) -> str:
    """Return a Cookie header's value without our cookies."""
    kept = []
    for pair in header.split(";"):
        name = pair.partition("=")[0].strip()
        if pair.strip() and not is_our_cookie(name, dashboard_origin=dashboard_origin):
            kept.append(pair.strip())
    return "; ".join(kept)


def stripped_query(query: str, credential: str = "") -> str:
    """Return a query without our parameters, and without `access_token` when it was the credential.

    The text is returned unchanged unless a parameter is removed.
    """
    if not query:
        return query
    # Decoded, as the reader of tokens decodes them: `coder%5Fsession_token` counts as well.
    names = {unquote_plus(part.partition("=")[0]) for part in query.split("&")}
    if not names & _OUR_QUERY and "access_token" not in names:
        return query
    pairs = parse_qsl(query, keep_blank_values=True)
    kept = [
        (name, value)
        for name, value in pairs
        if name not in _OUR_QUERY and not (name == "access_token" and credential and value == credential)
    ]
    return query if len(kept) == len(pairs) else urlencode(kept)


def to_app(
    headers: Headers, *, remote_ip: str, scheme: str, dashboard_origin: bool, credential: str
) -> list[tuple[bytes, bytes]]:
    """Return a request's headers for the application. `credential` is the caller's token."""
    bound = _connection_bound(headers)
    upgrade = wants_upgrade(headers)
    chunked = _is_chunked(headers)
    dropped = bound | _OUR_REQUEST_HEADERS | {b"cookie", b"x-forwarded-for"}
    sent: list[tuple[bytes, bytes]] = []
    for name, value in headers:
        if name in dropped or (name == b"expect" and value.strip().lower() != b"100-continue"):
            continue
        if name == b"authorization" and credential and value.decode("latin-1").strip().endswith(f" {credential}"):
            continue
        sent.append((_WEBSOCKET_NAMES.get(name, name), value))
    cookies = stripped_cookies(joined(headers, b"cookie", "; "), dashboard_origin=dashboard_origin)
    if cookies:
        sent.append((b"cookie", cookies.encode("latin-1")))
    chain = [part for part in (joined(headers, b"x-forwarded-for"), remote_ip) if part]
    sent.append((b"X-Forwarded-For", ", ".join(chain).encode("latin-1")))
    present = {name for name, _ in sent}
    if b"x-forwarded-proto" not in present:
        sent.append((b"X-Forwarded-Proto", scheme.encode()))
    if b"x-forwarded-host" not in present:
        sent.append((b"X-Forwarded-Host", first(headers, b"host").encode("latin-1")))
    if chunked:
        sent.append((b"Transfer-Encoding", b"chunked"))
    if upgrade:
        sent += [(b"Connection", b"Upgrade"), (b"Upgrade", joined(headers, b"upgrade").encode("latin-1"))]
    elif has_token(headers, b"te", "trailers"):
        sent.append((b"TE", b"trailers"))
    return sent


def from_app(headers: Headers, *, base_path: str, cors: Headers | None) -> list[tuple[bytes, bytes]]:
    """Return a response's headers for the browser.

    `base_path` is `/` for hosts. `cors` replaces the application's CORS headers; None keeps them.
    """
    bound = _connection_bound(headers)
    by_path = base_path != "/"
    sent: list[tuple[bytes, bytes]] = []
    for name, value in headers:
        if name in bound or (by_path and name in _WHOLE_ORIGIN):
            continue
        if name == b"set-cookie":
            cookie = _confined_cookie(value.decode("latin-1"), base_path)
            if cookie:
                sent.append((name, cookie.encode("latin-1")))
            continue
        if cors is not None and name.startswith(b"access-control-"):
            continue
        if cors is not None and name == b"vary":
            kept = [word.strip() for word in value.decode("latin-1").split(",")]
            kept = [word for word in kept if not word.lower().startswith(("origin", "access-control-"))]
            if kept:
                sent.append((name, ", ".join(kept).encode("latin-1")))
            continue
        sent.append((_WEBSOCKET_NAMES.get(name, name), value))
    return sent + list(cors or ())


def _confined_cookie(value: str, base_path: str) -> str:
    """Return a Set-Cookie value confined to its application; "" for one that would imitate our cookies."""
    pair, *attributes = [part.strip() for part in value.split(";")]
    # Without a name a browser sends the value alone, which may contain another name (`=coder_session_token=…`).
    name = pair.lstrip("= \t").partition("=")[0].strip()
    if is_our_cookie(name, dashboard_origin=base_path != "/"):
        return ""
    # A domain would reach other applications, perhaps the dashboard.
    kept = [part for part in attributes if part and not re.match(r"domain\s*=", part, re.IGNORECASE)]
    if base_path == "/":
        return "; ".join([pair, *kept])
    path = next((part.partition("=")[2].strip() for part in kept if re.match(r"path\s*=", part, re.IGNORECASE)), "")
    kept = [part for part in kept if not re.match(r"path\s*=", part, re.IGNORECASE)]
    if not path.startswith(base_path) and path != base_path.rstrip("/"):
        path = base_path + path.lstrip("/")
    return "; ".join([pair, f"Path={path}", *kept])


def cors_answer(origin: str, *, allowed: bool, wanted_headers: str = "", preflight: bool = False) -> Headers:
    """Return the CORS headers for an application with the `simple` behaviour."""
    if not origin or not allowed:
        return [(b"vary", b"Origin")] if origin else []
    sent = [
        (b"vary", b"Origin"),
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-allow-credentials", b"true"),
    ]
    if preflight:
        sent.append((b"access-control-allow-methods", b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"))
        if wanted_headers:
            sent.append((b"access-control-allow-headers", wanted_headers.encode("latin-1")))
        sent.append((b"access-control-max-age", b"600"))
    return sent
