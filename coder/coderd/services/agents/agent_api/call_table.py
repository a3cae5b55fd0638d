"""The table of calls that each group of the Agent service contributes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from google.protobuf.message import Message

CallTable: TypeAlias = dict[str, tuple[Callable[[Any], Awaitable[Message]], type[Message]]]
"""Handler and type of the request by the call's name in the protocol."""
