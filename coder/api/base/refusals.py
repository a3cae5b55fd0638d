"""Refusals of services. The caller that responds turns a `Refusal` into a status and the error envelope.

Not here: the mapping to HTTP (`appproxy/http/errors.py`). Texts are part of the public contract: clients match on some.
"""

from __future__ import annotations

from collections.abc import Sequence

from coder.base.errors import CoderError

NOT_FOUND_MESSAGE = "Resource not found or you do not have access to this resource"

FORBIDDEN_DETAIL = (
    "You don't have permission to view this content. If you believe this is a mistake, please contact your "
    "administrator or try signing in with different credentials."
)


class Refusal(CoderError):  # noqa: N818 - kinds are named for what they say
    """A request that cannot be fulfilled, with the reason for the caller."""

    kind = "refused"

    def __init__(
        self,
        message: str,
        detail: str = "",
        validations: Sequence[tuple[str, str]] = (),
        *,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(self.kind, message)
        self.detail = detail
        self.validations = tuple(validations)
        """Pairs of field and fault."""
        self.headers = tuple(headers)


class Invalid(Refusal):
    """Invalid request (400)."""

    kind = "invalid"


class InvalidFields(Invalid):
    """Invalid fields (400 with validations)."""

    def __init__(self, *fields: tuple[str, str], message: str = "Validation failed.") -> None:
        super().__init__(message, validations=fields)


class Unauthenticated(Refusal):
    """Missing or unknown credentials (401)."""

    kind = "unauthenticated"


class Forbidden(Refusal):
    """The caller may see the object but not do this (403)."""

    kind = "forbidden"

    def __init__(self, message: str = "", detail: str = "") -> None:
        super().__init__(message or "Forbidden.", detail or ("" if message else FORBIDDEN_DETAIL))


BAD_BODY = "Request body must be valid JSON."
"""Detail for a request that cannot be decoded, including values that its type does not allow."""


class NotFound(Refusal):
    """Object that does not exist, or is hidden from the caller (404)."""

    kind = "not_found"

    def __init__(
        self, message: str = NOT_FOUND_MESSAGE, detail: str = "", validations: Sequence[tuple[str, str]] = ()
    ) -> None:
        super().__init__(message, detail, validations)


class Conflict(Refusal):
    """Conflict with an existing name or state (409)."""

    kind = "conflict"


class NotAcceptable(Refusal):
    """Template version whose import is not over; upstream responds with 406."""

    kind = "not_acceptable"


class TooLarge(Refusal):
    kind = "too_large"


class TooSlow(Refusal):
    """Request that did not complete in time (408)."""

    kind = "too_slow"


class Precondition(Refusal):
    """Missing prior step; upstream responds with 412."""

    kind = "precondition"


class ExpectationFailed(Refusal):
    """User that still owns workspaces; upstream responds with 417."""

    kind = "expectation_failed"


class TooEarly(Refusal):
    """Job that has not finished yet (425)."""

    kind = "too_early"


class PreconditionRequired(Refusal):
    kind = "precondition_required"


class RateLimited(Refusal):
    kind = "rate_limited"


class Gone(Refusal):
    kind = "gone"


class Failed(Refusal):
    """Internal error with a message (500)."""

    kind = "failed"


class BadGateway(Refusal):
    """Invalid response from a server behind us (502)."""

    kind = "bad_gateway"


class Unavailable(Refusal):
    kind = "unavailable"
