"""Names for the driver's untyped objects: the import uses connections of its own, for cursors and COPY."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

Connection: TypeAlias = Any
"""Connection of asyncpg."""
Cursor: TypeAlias = Any
"""Cursor of asyncpg."""
Value: TypeAlias = Any
"""Value of a column, of a type that the query decides."""
Values: TypeAlias = Sequence[Any]
"""Values of a row."""
