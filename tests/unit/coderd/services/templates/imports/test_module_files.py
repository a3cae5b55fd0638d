"""Uploaded archives of modules: their owner, and the time of an upload."""

from __future__ import annotations

import io
from typing import Any
from uuid import UUID

import pytest
import trio
from trio.testing import MockClock

from coder.api.base.refusals import Invalid
from coder.coderd.services.templates.imports import module_files
from coder.coderd.services.templates.imports.module_files import ModuleFiles


class _Worker:
    id = UUID(int=1)


WORKER: Any = _Worker()


def test_old_link_end_keeps_new_upload() -> None:
    files: Any = ModuleFiles(None)  # type: ignore[arg-type]
    first, second, old, new = io.BytesIO(), io.BytesIO(), object(), object()
    files.put(WORKER, b"1", first, old)
    files.put(WORKER, b"2", second, new)
    assert first.closed
    files.forget(WORKER, old)
    assert files.get(WORKER, b"2") is second
    files.forget(WORKER, new)
    assert second.closed
    files.put(WORKER, b"3", io.BytesIO(), new)
    files.forget(WORKER)  # its job has ended
    assert files.get(WORKER, b"3") is None


@pytest.mark.parametrize(("size", "every", "taken"), [(4096, 1.0, 3600.0), (2048, 1.0, 120.0), (0, 1.0, 60.0)])
async def test_upload_time_grows_with_bytes(autojump_clock: MockClock, size: int, every: float, taken: float) -> None:
    files: Any = ModuleFiles(None)  # type: ignore[arg-type]
    began = trio.current_time()
    with pytest.raises(Invalid, match="too slow"), files.receiving(WORKER) as came:
        while True:
            await trio.sleep(every)
            came(size)
    assert trio.current_time() - began == pytest.approx(taken, abs=2)
    assert taken <= module_files.UPLOAD_TOTAL
    assert not files._uploads
