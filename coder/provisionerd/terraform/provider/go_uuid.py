"""UUID texts as google/uuid accepts them: plain, urn:uuid:, in braces, or 32 digits without hyphens."""

from __future__ import annotations

import re
from dataclasses import dataclass

NIL = "00000000-0000-0000-0000-000000000000"
_PLAIN = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class NotUuid:
    reason: str


def parse_uuid(text: str) -> str | NotUuid:
    """The UUID in lower case, or why the text is none."""
    lowered = text.lower()
    if len(text) == 36 + 9:
        if not lowered.startswith("urn:uuid:"):
            return NotUuid(f'invalid urn prefix: "{text[:9]}"')
        lowered = lowered[9:]
    elif len(text) == 36 + 2:
        if not (lowered.startswith("{") and lowered.endswith("}")):
            return NotUuid("invalid bracketed UUID format")
        lowered = lowered[1:-1]
    elif len(text) == 32:
        lowered = "-".join((lowered[:8], lowered[8:12], lowered[12:16], lowered[16:20], lowered[20:]))
    elif len(text) != 36:
        return NotUuid(f"invalid UUID length: {len(text)}")
    return lowered if _PLAIN.fullmatch(lowered) else NotUuid("invalid UUID format")
