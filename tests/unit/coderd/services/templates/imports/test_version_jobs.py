"""The end of an import deletes the modules that its daemon uploaded."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from coder.coderd.services.templates.imports.module_files import ModuleFiles
from coder.coderd.services.templates.imports.version_jobs import ImportJobs

JOB = UUID(int=7)


async def test_import_end_drops_uploaded_modules() -> None:
    files: Any = ModuleFiles(None)  # type: ignore[arg-type]
    ctx: Any = None
    worker: Any = SimpleNamespace(id=UUID(int=1))
    archive = io.BytesIO()
    files.put(worker, b"1", archive, object())
    jobs = ImportJobs(ctx, files)
    transaction: Any = None
    (await jobs.ended(transaction, JOB))()  # reaped: the daemon may have begun another job
    assert not archive.closed
    follow_up = await jobs.ended(transaction, JOB, worker)
    assert not archive.closed, "the end is not committed yet"
    follow_up()
    assert archive.closed
