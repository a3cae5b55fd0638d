"""The two names of session cookies: the plain one, and the one with `__Host-`, which a deployment can require.

A browser accepts a `__Host-` cookie only over TLS, for one host and its whole path: neither a neighbouring host nor a
page served without TLS can plant one. Inside the server there is only the plain name; request heads are renamed on
arrival. Source: RFC 6265bis section 4.1.3.2; pure.
"""

from __future__ import annotations

SESSION_COOKIE = "coder_session_token"
PATH_SESSION_COOKIE = "coder_path_app_session_token"
"""Cookie of visitors to applications below a workspace proxy's own address."""
SUBDOMAIN_SESSION_COOKIE = "coder_subdomain_app_session_token"
"""Prefix of the cookie's name for visitors to one application's host."""
HOST_PREFIX = "__Host-"


def renamed(header: str) -> str:
    """Return a Cookie header with only the prefixed sessions, under their plain names."""
    kept = []
    for pair in header.split(";"):
        name = pair.partition("=")[0].strip()
        if is_session(name):
            continue  # an unprefixed cookie may be planted
        kept.append(pair.strip().removeprefix(HOST_PREFIX) if is_prefixed(name) else pair.strip())
    return "; ".join(part for part in kept if part)


def is_session(name: str) -> bool:
    """Return whether a cookie of this name is a session of the dashboard or an application."""
    return name in {SESSION_COOKIE, PATH_SESSION_COOKIE} or name.startswith(SUBDOMAIN_SESSION_COOKIE)


def is_prefixed(name: str) -> bool:
    return name.startswith(HOST_PREFIX) and is_session(name.removeprefix(HOST_PREFIX))


def session_cookie_line(token: str, *, prefixed: bool, secure: bool, same_site: str, max_age: int) -> str:
    """Return the Set-Cookie value that signs a browser in, or out when the token is empty."""
    name = HOST_PREFIX * prefixed + SESSION_COOKIE
    tail = "; Secure" if secure or prefixed else ""
    hidden = "; HttpOnly" if token else ""
    return f"{name}={token}; Path=/; Max-Age={max_age}{hidden}{tail}; SameSite={same_site}"
