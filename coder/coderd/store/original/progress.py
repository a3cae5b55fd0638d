"""The progress of an import, stored in the target with every batch: a stopped import continues where it was."""

from __future__ import annotations

import msgspec

from coder.coderd.store.site.site_settings import ORIGINAL_IMPORT as KEY

__all__ = ["KEY", "Progress", "StepProgress", "decode", "encode"]


class StepProgress(msgspec.Struct, kw_only=True):
    """Progress of one step."""

    after: str = ""
    """Last value of the step's cursor; empty at the beginning, and for steps without a cursor."""
    is_done: bool = False
    taken: int = 0
    conflicts: int = 0
    """Rows that a unique index of this schema does not admit."""
    missing: dict[str, int] = msgspec.field(default_factory=dict)
    """Rows that refer to an object that is not there, by column."""

    @property
    def seen(self) -> int:
        """Return the number of rows that were read."""
        return self.taken + self.conflicts + sum(self.missing.values())


class Progress(msgspec.Struct, kw_only=True):
    """Progress of an import from one source."""

    source: str
    """Deployment id of the original."""
    migration: int
    started_at: str
    finished_at: str = ""
    tables: dict[str, str] = msgspec.field(default_factory=dict)
    """Fingerprints of the source's tables at the beginning."""
    steps: dict[str, StepProgress] = msgspec.field(default_factory=dict)

    def of(self, label: str) -> StepProgress:
        return self.steps.setdefault(label, StepProgress())


def decode(text: str) -> Progress:
    """Return a stored record."""
    return msgspec.json.decode(text, type=Progress)


def encode(progress: Progress) -> str:
    return msgspec.json.encode(progress).decode()
