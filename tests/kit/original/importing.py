"""The import as tests run it: from a source's URL into a fresh database."""

# ruff: noqa: S608 (names of this package's tables)
from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from coder.coderd.services.foundation.encryption_at_rest import read_keys
from coder.coderd.services.site.original_encryption import Reencryption
from coder.coderd.services.site.original_import import Report, dry_run, import_original
from coder.coderd.store.engine.database import open_database
from coder.coderd.store.original.constraints import numbered_columns
from coder.coderd.store.original.source import open_snapshot
from coder.coderd.store.original.steps import STEPS
from tests.kit.original.database import execute, original_database
from tests.kit.server.postgres_server import fresh_database


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


class StoppedError(Exception):
    """Stands for the kill of the process."""


@asynccontextmanager
async def both() -> AsyncIterator[tuple[str, str]]:
    """The URLs of a source and of an empty target."""
    async with original_database() as source, fresh_database() as target:
        yield source, target


def numbers(report: Report) -> dict[str, tuple[int, int, list[tuple[str, int]]]]:
    return {
        kind.kind: (kind.rows, kind.taken, [(item.reason, item.count) for item in kind.not_taken])
        for kind in report.kinds
    }


async def content(url: str) -> list[str]:
    """Every row of the imported tables as text, without the keys that a database generates."""
    selects = []
    for step in STEPS:
        generated = [name for table, name in numbered_columns() if table == step.target]
        dropped = "".join(f" - '{name}'" for name in generated if name not in step.columns)
        selects.append(f"SELECT '{step.target} ' || (to_jsonb(t){dropped})::text FROM {step.target} t")
    return [row[0] for row in await execute(url, " UNION ALL ".join(dict.fromkeys(selects)) + " ORDER BY 1")]
