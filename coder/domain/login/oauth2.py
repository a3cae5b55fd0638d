"""Pure parts of the OAuth2 provider: generated secrets, PKCE, acceptable redirect addresses.

RFC 6749 (codes and tokens), RFC 7636 (PKCE, S256 only), RFC 7591 (a client's own registration).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from urllib.parse import urlsplit

from coder.domain.foundation.names import is_word

_SCHEME = "coder"
PREFIX_LENGTH = 10
SECRET_LENGTH = 40
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_DANGEROUS = frozenset({"javascript", "data", "vbscript", "file", "about", "blob"})


def join_secret(prefix: str, secret: str) -> str:
    """Return `coder_<prefix>_<secret>`, the form of codes, client secrets and refresh tokens."""
    return f"{_SCHEME}_{prefix}_{secret}"


def split_secret(text: str) -> tuple[str, str] | None:
    """Return (prefix, secret), or None for a text of another form."""
    parts = text.split("_")
    if len(parts) != 3 or parts[0] != _SCHEME:
        return None
    prefix, secret = parts[1:]
    if len(prefix) != PREFIX_LENGTH or len(secret) != SECRET_LENGTH or not is_word(prefix):
        return None
    return prefix, secret


def may_be_legacy(*, public_client: bool) -> bool:
    """Return whether an owner may allow requests without a challenge. Codes must be bound by PKCE or by a secret; the
    table has the same as a CHECK."""
    return not public_client


def verifies_challenge(challenge: str, verifier: str, *, legacy: bool = False) -> bool:
    """Verify S256 of RFC 7636 section 4.6. A code without a challenge is unbound, and valid for `legacy` clients
    alone."""
    if not challenge:
        return legacy and not verifier
    digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    return hmac.compare_digest(digest.encode(), challenge.encode())


def redirect_problem(uris: Sequence[str]) -> str:
    """Return why a client's redirect addresses are refused; empty when they are valid."""
    if not uris:
        return "redirect_uris is required for authorization code flow"
    for index, uri in enumerate(uris):
        problem = _uri_problem(uri)
        if problem:
            return f"invalid redirect_uris: redirect URI at index {index}: {problem}"
    return ""


def _uri_problem(uri: str) -> str:
    # Checked before parsing, which drops line ends that the address would carry into a header.
    if not uri.isascii() or not uri.isprintable() or " " in uri:
        return "redirect URI must be of printable ASCII without spaces (RFC 3986)"
    try:
        parts = urlsplit(uri)
        host = parts.hostname or ""
    except ValueError:
        return "redirect URI is not a URL"
    if not parts.scheme:
        return "redirect URI must have a scheme"
    if parts.fragment or uri.endswith("#"):
        return "redirect URI must not contain a fragment"
    if parts.scheme in _DANGEROUS:
        return f"dangerous scheme {parts.scheme!r} is not allowed"
    if parts.scheme in {"http", "https"}:
        if not host:
            return "redirect URI must have a host"
        if parts.scheme == "http" and host not in _LOOPBACK:
            return "redirect URI must use https, or http on a loopback address"
        return ""
    return ""  # an application's own scheme (RFC 8252 section 7.1)
