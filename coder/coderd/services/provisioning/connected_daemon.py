"""A connected provisioner daemon, as the services know it."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from coder.base.ids import new_uuid
from coder.domain.provisioning.queue import DaemonOffer


@dataclass(frozen=True, slots=True)
class Worker:
    """A connected daemon."""

    id: UUID
    name: str
    offer: DaemonOffer
    "Organization, types and tags of the daemon."
    user_id: UUID | None = None
    "User whose token the daemon authenticated with, if any."
    link: UUID = field(default_factory=new_uuid)
    "Id of this connection; a daemon may have several."
