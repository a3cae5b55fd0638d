"""Rule for the addresses of releases: of the list, of the folders and notes it names, and of redirects."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urljoin, urlsplit

from coder.base.errors import CoderError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_FILE = "file"
MAX_SHOWN = 1024
"Characters of a location in an error."


def is_address(location: str) -> bool:
    """Return whether a location is an address instead of a path; `file://` begins a path."""
    match = _SCHEME.match(location)
    return match is not None and match[1].lower() != _FILE


def shown_location(location: str) -> str:
    """Return a location for errors: printable, and without user information, query and fragment, which may be
    secret."""
    if is_address(location):
        whole, separator, _ = location.partition("?")
        scheme, _, rest = whole.partition("#")[0].partition("://")
        authority, slash, path = rest.partition("/")
        location = f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}{'?***' if separator else ''}"
    return "".join(letter if letter.isprintable() else "?" for letter in location[:MAX_SHOWN])


def checked_address(address: str) -> SplitResult:
    """Return the parts of an address. Raise CoderError `release_source` for one that cannot be used.

    User information is refused: errors, logs and answers name addresses. No message repeats any of the address except
    its host.
    """
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _refusal("an address of releases is not valid", "Check the host and the port of the address.") from None
    if parts.scheme not in {"http", "https"}:
        raise _refusal(f"an address of releases begins with {parts.scheme}://", "Use https://, http:// or a path.")
    if not host or port == 0 or any(letter.isspace() or not letter.isprintable() for letter in address):
        raise _refusal("an address of releases is not valid", "Check the host and the port of the address.")
    if "@" in parts.netloc:
        raise _refusal(
            f"the address of releases on {host} contains a user name or password",
            "Serve the releases without a login, because their signatures protect them, or name a mounted folder.",
        )
    return parts


def joined_address(base: str, reference: str) -> str:
    """Return the checked address of `reference` relative to the address `base`. Raise CoderError `release_source`, also
    if it leaves TLS: signatures protect the programs, and TLS hides which release a machine runs."""
    try:
        joined = urljoin(base, reference)
    except ValueError:
        joined = reference
    parts = checked_address(joined)
    if parts.scheme == "http" and checked_address(base).scheme == "https":
        raise _refusal(
            f"an https address of releases leads to http on {parts.hostname}", "Serve the releases with https as well."
        )
    return joined


def _refusal(message: str, hint: str) -> CoderError:
    return CoderError("release_source", message, hint)
