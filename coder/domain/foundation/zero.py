"""Go's zero values, which the API shows instead of null."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

ZERO_TIME = datetime(1, 1, 1, tzinfo=UTC)
"""`0001-01-01T00:00:00Z`: never."""

NIL_UUID = UUID(int=0)
