"""Visitor of an application or a terminal, as far as this process knows."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from coder.domain.access.credentials import Credentials
from coder.domain.access.policy import NIL


@dataclass(frozen=True, slots=True)
class Visitor:
    """Admitted visitor: by a token, else by a ticket of that user (NIL: anonymous)."""

    credentials: Credentials
    user_id: UUID = NIL
    key_id: str = ""
    """API key that requested the ticket, if the ticket names one."""
