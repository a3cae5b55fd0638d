"""The table of calls that each group of the Agent service contributes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias, TypeVar, cast

from google.protobuf.message import Message

Request = TypeVar("Request", bound=Message)
Answer: TypeAlias = Callable[[Message], Awaitable[Message]]
CallTable: TypeAlias = dict[str, tuple[Answer, type[Message]]]
"""Handler and type of the request by the call's name in the protocol."""


class CallGroup(Protocol):
    """Calls of one connected agent."""

    def calls(self) -> CallTable:
        """Return the calls of this group by name."""


def call(answer: Callable[[Request], Awaitable[Message]], request: type[Request]) -> tuple[Answer, type[Message]]:
    """Return an entry of the table. The server decodes each request as `request` before it calls `answer`."""
    return cast("Answer", answer), request
