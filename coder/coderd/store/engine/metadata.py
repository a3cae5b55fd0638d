"""The one MetaData every table belongs to, and the column types tables share.

Tables live in `store/tables/<noun>.py`; importing `coder.coderd.store.tables` loads them all (migrations and the
schema test need the complete set).
"""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import Dialect, MetaData
from sqlalchemy.dialects.postgresql import ARRAY, BYTEA, JSONB, TIMESTAMP
from sqlalchemy.dialects.postgresql import UUID as _UUID
from sqlalchemy.types import Text, TypeDecorator

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)
"""Names follow a convention so that a unique violation can be identified by constraint name."""


class _Timestamp(TypeDecorator[datetime]):
    """timestamptz that reads -infinity (asyncpg's form of year 1, Go's zero time) as an aware datetime."""

    impl = TIMESTAMP(timezone=True)
    cache_ok = True

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return value.replace(tzinfo=UTC) if value is not None and value.tzinfo is None else value


Uuid = _UUID(as_uuid=True)
Timestamp = _Timestamp()
TextArray = ARRAY(Text)
Json = JSONB
Bytes = BYTEA

__all__ = ["Bytes", "Json", "TextArray", "Timestamp", "Uuid", "metadata"]
