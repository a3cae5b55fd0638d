"""The import as tests run it: from a source's URL into a fresh database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from coder.coderd.services.foundation.encryption_at_rest import read_keys
from coder.coderd.services.site.original_encryption import Reencryption
from coder.coderd.services.site.original_import import Report, dry_run, import_original
from coder.coderd.store.engine.database import open_database
from coder.coderd.store.original.source import open_snapshot


async def run_import(
    source: str, target: str, *, keys: Sequence[str] = (), ignore_unknown: bool = False, tell: Any = None
) -> Report:
    async with open_snapshot(source) as snapshot, open_database(target) as database:
        return await import_original(
            snapshot,
            database,
            Reencryption(read_keys(keys, "--keys")),
            lambda: datetime.now(UTC),
            tell or (lambda *_: None),
            ignore_unknown=ignore_unknown,
        )


async def run_dry(source: str, *, keys: Sequence[str] = ()) -> Report:
    async with open_snapshot(source) as snapshot:
        reencryption = Reencryption(read_keys(keys, "--keys"))
        return await dry_run(snapshot, reencryption, lambda *_: None, ignore_unknown=False)
