"""Files of one user and content: there is only one, in any order of uploads."""

from __future__ import annotations

import hashlib
import io
from uuid import UUID

import pytest
import trio
from sqlalchemy import text

from coder.base.ids import new_uuid
from coder.coderd.store.engine.database import Tx, let_others_run
from coder.coderd.store.templates import files as store
from coder.coderd.store.templates.files import FileRow
from tests.kit.server.server_in_process import running_coderd

# Waiters for this transaction. Not pg_stat_activity: a transaction sees its state at the first read.
_WAITS = text("SELECT count(*) FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::xid")


@pytest.mark.parametrize("size", [3, store.PIECE + 3], ids=["small", "large"])
async def test_concurrent_uploads_share_one_file(size: int) -> None:
    """Two imports of one user end with the same modules: neither fails because of the other."""
    content = b"x" * size
    started = trio.Event()

    async with running_coderd(first_user=True) as world:

        def new_row() -> FileRow:
            digest = hashlib.sha256(content).hexdigest()
            return FileRow(new_uuid(), digest, UUID(world.user_id), world.ctx.clock.now(), "application/x-tar", b"")

        token = trio.lowlevel.current_trio_token()
        kept: list[UUID] = []

        async def first(tx: Tx) -> UUID:
            result = await store.keep_file(tx, new_row(), io.BytesIO(content))
            token.run_sync_soon(started.set)
            while not (await tx.execute(_WAITS)).scalar_one():
                await let_others_run()
            return result

        async def keep_first() -> None:
            kept.append(await world.ctx.db.run(first))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(keep_first)
            await started.wait()
            kept.append(await world.ctx.db.run(store.keep_file, new_row(), io.BytesIO(content)))
        assert kept[0] == kept[1]
        assert await world.ctx.db.read(store.get_size, kept[0]) == size
