"""The session cookies' two names: the plain one, and `__Host-` before it where the deployment wants that.

A browser takes a `__Host-` cookie only over TLS, for one host and its whole path: neither a neighbouring host nor a
page served without TLS can plant one. Inside the server there is only the plain name; heads are renamed as they come.
Source: RFC 6265bis section 4.1.3.2; pure.
"""

from __future__ import annotations

SESSION_COOKIE = "coder_session_token"
PATH_SESSION_COOKIE = "coder_path_app_session_token"
"Of visitors to applications below a workspace proxy's own address."
SUBDOMAIN_SESSION_COOKIE = "coder_subdomain_app_session_token"
"Begins the name of the cookie of visitors to one application's host."
HOST_PREFIX = "__Host-"


def renamed(header: str) -> str:
    """A Cookie header where only prefixed sessions count, under their plain names."""
    kept = []
    for pair in header.split(";"):
        name = pair.partition("=")[0].strip()
        if is_session(name):
            continue  # anybody could have planted this one
        kept.append(pair.strip().removeprefix(HOST_PREFIX) if is_prefixed(name) else pair.strip())
    return "; ".join(part for part in kept if part)


def is_session(name: str) -> bool:
    """Is a cookie of this name a session, the dashboard's or an application's?"""
    return name in {SESSION_COOKIE, PATH_SESSION_COOKIE} or name.startswith(SUBDOMAIN_SESSION_COOKIE)


def is_prefixed(name: str) -> bool:
    return name.startswith(HOST_PREFIX) and is_session(name.removeprefix(HOST_PREFIX))


def session_cookie_line(token: str, *, prefixed: bool, secure: bool, same_site: str, max_age: int) -> str:
    """The Set-Cookie value a browser is signed in (or, without a token, out) by."""
    name = HOST_PREFIX * prefixed + SESSION_COOKIE
    tail = "; Secure" if secure or prefixed else ""
    hidden = "; HttpOnly" if token else ""
    return f"{name}={token}; Path=/; Max-Age={max_age}{hidden}{tail}; SameSite={same_site}"
