"""The rule for untagged jobs and tagged daemons (`domain/provisioning/tags.py`), as the dispatcher applies it now."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.store.provisioning.jobs import list_served
from coder.domain.provisioning.queue import TagRule

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def load_tag_rule(tx: Tx, organization_ids: Collection[UUID], now: datetime, *, strict: bool) -> TagRule:
    """Return the rule for jobs of some organizations; `strict` is `--provisioner-strict-tags`."""
    return TagRule(strict, frozenset() if strict else await list_served(tx, organization_ids, now))
