"""Fields of the messages of agents, read without trust."""

from __future__ import annotations

from datetime import UTC, datetime
from ipaddress import ip_address
from uuid import UUID

from google.protobuf.timestamp_pb2 import Timestamp

from coder.rpc.errors import RpcError


def uuid_untrusted(raw: bytes) -> UUID:
    """Return a UUID. Raises RpcError for anything but 16 bytes."""
    if len(raw) != 16:
        raise RpcError(0, f"invalid UUID (got {len(raw)} bytes)")
    return UUID(bytes=raw)


def time_of(stamp: Timestamp) -> datetime:
    """Return a protobuf time; 1970 for a time out of range, as for a missing one."""
    try:
        return stamp.ToDatetime(UTC)
    except (ValueError, OverflowError):
        return datetime(1970, 1, 1, tzinfo=UTC)


def address_untrusted(text: str) -> str:
    """Return an IP address in canonical form; empty for any other text."""
    try:
        return str(ip_address(text))
    except ValueError:
        return ""


def clean_text(text: str) -> str:
    """Replace NUL, which Postgres cannot store; protobuf already rejects invalid UTF-8."""
    return text.replace("\x00", "❌")
