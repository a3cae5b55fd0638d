"""A connected provisioner daemon, as the services know it."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from coder.base.ids import new_uuid
from coder.domain.provisioning.queue import Offer


@dataclass(frozen=True, slots=True)
class Worker:
    """A connected daemon."""

    id: UUID
    name: str
    offer: Offer
    "Its organization, types and tags."
    user_id: UUID | None = None
    "Whose token it came with, if any."
    link: UUID = field(default_factory=new_uuid)
    "This connection of it, of perhaps several."
