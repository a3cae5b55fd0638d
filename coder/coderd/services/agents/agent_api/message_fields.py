"""Fields of the messages of agents, read without trust."""

from __future__ import annotations

from datetime import UTC, datetime
from ipaddress import ip_address
from uuid import UUID

from google.protobuf.timestamp_pb2 import Timestamp

from coder.rpc.errors import RpcError


def uuid_untrusted(raw: bytes) -> UUID:
    """Raises RpcError for anything but 16 bytes."""
    if len(raw) != 16:
        raise RpcError(0, f"invalid UUID (got {len(raw)} bytes)")
    return UUID(bytes=raw)


def time_of(stamp: Timestamp) -> datetime:
    """A protobuf time; out-of-range ones become 1970, as missing ones are."""
    try:
        return stamp.ToDatetime(UTC)
    except (ValueError, OverflowError):
        return datetime(1970, 1, 1, tzinfo=UTC)


def address_untrusted(text: str) -> str:
    """An IP address in its usual form; empty for anything else."""
    try:
        return str(ip_address(text))
    except ValueError:
        return ""


def clean_text(text: str) -> str:
    """What Postgres can hold: no NUL (invalid UTF-8 does not pass protobuf)."""
    return text.replace("\x00", "❌")
