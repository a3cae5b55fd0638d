"""Address of a registry of Terraform modules, as an administrator writes it."""

from __future__ import annotations

import re

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"(?:{_LABEL}\.)*{_LABEL}(?::[0-9]{{1,5}})?", re.IGNORECASE)


def registry_host(address: str) -> str:
    """Return the host that a module's `source` begins with; empty for an empty address.

    `https://` in front and `/` at the end are allowed; Terraform speaks HTTPS only. Raises ValueError.
    """
    host = address.strip().removeprefix("https://").removesuffix("/")
    if host and not _HOST.fullmatch(host):
        raise ValueError(f"{address!r} is not the host of a registry, such as registry.example.com")
    return host.lower()
