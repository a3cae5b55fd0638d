"""Errors of calls. This module does not know the framing; both drivers and handlers raise these."""

from __future__ import annotations

from coder.base.errors import CoderError

INVALID_ARGUMENT = 3
"""dRPC error code (ours) of a request that no repetition makes valid."""
UNAVAILABLE = 14
"""dRPC error code (ours, gRPC's number) of a call that failed because the server's database does not answer, or lacks a
resource such as room on its disk. The call may have taken effect; a repetition is expected."""
OUTCOME_UNKNOWN = 2
"""dRPC error code (ours, gRPC's UNKNOWN) of a call of which the server cannot tell whether it took effect: a repetition
could take effect twice."""
UNIMPLEMENTED = 12
"""dRPC error code of a call the server does not have (docs/protocol/rpc.md#errors); peers then stop asking without an
error."""


class RpcError(CoderError):
    """The peer replied with an error: a number (0 for ordinary ones) and its text."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__("rpc_error", text)
        self.number = number
        self.text = text


class RpcClosed(CoderError):  # noqa: N818 - a state of the connection more than a mistake
    """The connection, or the call's stream, ended before a reply came."""

    def __init__(self, message: str = "the connection ended before the call was answered") -> None:
        super().__init__("rpc_closed", message)


def unimplemented() -> RpcError:
    """Return the error for a call this server does not offer (yet)."""
    return RpcError(UNIMPLEMENTED, "Unimplemented")
