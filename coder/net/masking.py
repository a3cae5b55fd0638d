"""Masking of secrets in addresses: for people, errors and logs. Client and server use the same function.

An API puts secrets in known locations: in a query, as a login, and in a few paths, which the table here lists. A test
compares it with the server's routes.
"""

from __future__ import annotations

import re
from typing import TypeVar, cast

T = TypeVar("T")

SECRET_PATHS = ("/api/v2/provisionerkeys/", "/derp/streams/")
"""A segment after one of these is a secret, whatever the answer: a provisioner key; the id of a carried stream, which
authorizes its use."""

STARS = "***"
MAX_SHOWN = 1024
"Characters shown of an address. The address may be a stranger's, and its message goes into a log line or an answer."
_WORDS = ("token", "secret", "key", "code", "pass", "session", "sig", "state", "auth", "credential", "jwt")
_LOGIN = re.compile(r"//[^/]*@")
"""Up to the last @: a password that was not escaped may have one."""
_WEB_LOGIN = re.compile(r"(?i)^(https?://)[^/?#]*@")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# Servers treat several slashes as one, and a URL may have its own path before ours. A run of slashes is processed once,
# from its first: a path may be sixty thousand of them.
_BEFORE = "(" + "|".join("/++".join(path.split("/")).replace("/++", "(?<!/)/++", 1) for path in SECRET_PATHS) + ")"
_PART, _REST = re.compile(_BEFORE + "[^?#]+"), re.compile(_BEFORE + ".+", re.DOTALL)


def masked(url: str) -> str:
    """Return the URL, or path with a query, with stars for the login, a secret in the path and secret fields."""
    return shortened(_masked(url))


def shown_setting(value: T) -> T:
    """Return the value of a setting for display: addresses in it, also of a list, as `masked`, but not shortened."""
    if isinstance(value, str) and _ADDRESS.match(value):
        return cast("T", _masked(value))
    if isinstance(value, list | tuple):
        return cast("T", type(value)(shown_setting(item) for item in value))
    return value


def without_web_login(url: str) -> str:
    """Return an http address without its user information, which may be a token; other addresses unchanged: the user of
    `ssh://git@host` is no secret."""
    return _WEB_LOGIN.sub(r"\1", url)


def _masked(url: str) -> str:
    first, *others = _PART.sub(rf"\1{STARS}", url).split("&")
    whole = "&".join((_masked_field(first), *(_masked_field(f"?{text}")[1:] for text in others)))
    return _LOGIN.sub(f"//{STARS}@", whole)


def _masked_field(text: str) -> str:
    """Mask a field that ends with `&`. A name begins behind a `?` and ends with `=`; all that follows is its value.

    No pattern: that was cubic, and a workspace proxy chooses the address at which its health is polled.
    """
    names = text.split("=")
    for number, name in enumerate(names[:-1]):
        key = name.partition("?")[2].lower()
        if any(word in key for word in _WORDS):
            return "=".join((*names[: number + 1], STARS))
    return text


def masked_path(path: str) -> str:
    """Mask a decoded path: `?` and `#` are ordinary characters in it. Not shortened."""
    return _REST.sub(rf"\1{STARS}", path)


def shortened(text: str) -> str:
    """Return the shown part of an address."""
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
