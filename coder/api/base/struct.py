"""The base of every JSON shape.

Absent is not null: an optional field defaults to `UNSET` and is left out; a nullable one is `T | None` and is
written as null. Unknown fields of newer peers are ignored.
"""

from __future__ import annotations

import msgspec


class ApiStruct(msgspec.Struct, kw_only=True):
    """JSON object of the public contract; field names are the wire's names."""
