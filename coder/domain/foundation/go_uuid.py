"""UUID texts as google/uuid accepts them: plain, urn:uuid:, in braces, or 32 digits without hyphens.

The Terraform provider and every request that names an id use this one rule; Python's own parser accepts hyphens and
braces at any position.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from uuid import UUID

NIL = "00000000-0000-0000-0000-000000000000"
_PLAIN = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_URN = "urn:uuid:"


@dataclass(frozen=True, slots=True)
class NotUuid:
    reason: str


def parse_uuid(text: str) -> str | NotUuid:
    """Return the UUID in lower case, or why the text is not a UUID."""
    lowered, size = text.lower(), len(text.encode(errors="replace"))  # Go counts bytes
    if size == 36 + len(_URN):
        if not lowered.startswith(_URN):
            return NotUuid(f'invalid urn prefix: "{text[: len(_URN)]}"')
        lowered = lowered[len(_URN) :]
    elif size == 36 + 2:
        if not (lowered.startswith("{") and lowered.endswith("}")):
            return NotUuid("invalid bracketed UUID format")
        lowered = lowered[1:-1]
    elif size == 32:
        lowered = "-".join((lowered[:8], lowered[8:12], lowered[12:16], lowered[16:20], lowered[20:]))
    elif size != 36:
        return NotUuid(f"invalid UUID length: {size}")
    return lowered if _PLAIN.fullmatch(lowered) else NotUuid("invalid UUID format")


def read_uuid(text: str) -> UUID:
    """Return the UUID a request names. Raises ValueError with Go's words."""
    uuid = parse_uuid(text)
    if isinstance(uuid, NotUuid):
        raise ValueError(uuid.reason)
    return UUID(uuid)
