"""Who is in an application or at a terminal, as far as this process knows."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from coder.domain.access.credentials import Credentials
from coder.domain.access.policy import NIL


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who came in: by a token that was shown, else by a ticket of that user (NIL: nobody in particular)."""

    shown: Credentials
    user_id: UUID = NIL
