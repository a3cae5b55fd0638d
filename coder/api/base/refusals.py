"""How a service says no. Each refusal is a `Refusal`; whoever answers turns it into a status and the error envelope.

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
    """The request cannot be done, and the caller is told why."""

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
        "Pairs of field and what is wrong with it."
        self.headers = tuple(headers)


class Invalid(Refusal):
    """The request itself is wrong (400)."""

    kind = "invalid"


class InvalidFields(Invalid):
    """Some fields did not pass (400 with validations)."""

    def __init__(self, *fields: tuple[str, str], message: str = "Validation failed.") -> None:
        super().__init__(message, validations=fields)


class Unauthenticated(Refusal):
    """Nobody we know asks (401)."""

    kind = "unauthenticated"


class Forbidden(Refusal):
    """The caller may see the object but not do this (403)."""

    kind = "forbidden"

    def __init__(self, message: str = "", detail: str = "") -> None:
        super().__init__(message or "Forbidden.", detail or ("" if message else FORBIDDEN_DETAIL))


BAD_BODY = "Request body must be valid JSON."
"""Of a request that cannot be decoded, be it for a value that its type does not allow."""


class NotFound(Refusal):
    """No such object, or none the caller may know of (404)."""

    kind = "not_found"

    def __init__(
        self, message: str = NOT_FOUND_MESSAGE, detail: str = "", validations: Sequence[tuple[str, str]] = ()
    ) -> None:
        super().__init__(message, detail, validations)


class Conflict(Refusal):
    """Something else has that name or state (409)."""

    kind = "conflict"


class TooLarge(Refusal):
    kind = "too_large"


class TooSlow(Refusal):
    """The request did not come to its end in time (408)."""

    kind = "too_slow"


class Precondition(Refusal):
    """Upstream answers 412 where a prior step is missing."""

    kind = "precondition"


class ExpectationFailed(Refusal):
    """Upstream answers 417 when a user still owns workspaces."""

    kind = "expectation_failed"


class TooEarly(Refusal):
    """A job has not finished yet (425)."""

    kind = "too_early"


class PreconditionRequired(Refusal):
    kind = "precondition_required"


class RateLimited(Refusal):
    kind = "rate_limited"


class Gone(Refusal):
    kind = "gone"


class Failed(Refusal):
    """Our own fault, with words (500)."""

    kind = "failed"


class BadGateway(Refusal):
    """Something behind us did not answer as it should (502)."""

    kind = "bad_gateway"


class Unavailable(Refusal):
    kind = "unavailable"
