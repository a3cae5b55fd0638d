"""The database behind PgBouncer with a Debian package's settings: session mode works, other modes are refused."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from sqlalchemy import text

from coder.base.errors import CoderError
from coder.coderd.store.engine.database import Tx, open_database
from coder.coderd.store.engine.migrate import migrate, wait_for_database
from tests.kit.free_ports import free_port
from tests.kit.server.postgres_server import fresh_database

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed (apt-get install pgbouncer)")


@asynccontextmanager
async def _pgbouncer(folder: Path, url: str, mode: str, size: int = 20) -> AsyncIterator[str]:
    name = url.split("/")[3].split("?", maxsplit=1)[0]
    sockets = url.split("host=")[1].split("&", maxsplit=1)[0]
    port = free_port()
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n{name} = host={sockets} user=coder\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
        f"auth_type = any\npool_mode = {mode}\ndefault_pool_size = {size}\nunix_socket_dir =\n"
        "ignore_startup_parameters = extra_float_digits\n"
    )
    owner = Path(sockets).stat().st_uid  # the socket's folder is private
    process = subprocess.Popen(
        [str(PGBOUNCER), str(folder / "pgbouncer.ini")],
        user=owner if os.geteuid() == 0 else None,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield f"postgresql://coder@127.0.0.1:{port}/{name}"
    finally:
        process.send_signal(signal.SIGKILL)
        await trio.to_thread.run_sync(process.wait)


async def _settings(tx: Tx) -> list[str]:
    names = ("jit", "plan_cache_mode")
    return [(await tx.execute(text(f"SELECT current_setting('{name}')"))).scalar_one() for name in names]


async def _notify(tx: Tx) -> None:
    await tx.execute(text("NOTIFY news, 'heard'"))


async def test_session_mode(open_path: Path) -> None:
    async with fresh_database() as url, _pgbouncer(open_path, url, "session") as pooled, open_database(pooled) as db:
        await wait_for_database(db)
        await migrate(db)
        assert await db.read(_settings) == ["off", "force_generic_plan"]
        async with db.listen("news") as notices:
            await db.run(_notify)
            with trio.fail_after(60):
                assert await notices.receive() == ("news", "heard")


@pytest.mark.parametrize("mode", ["transaction", "statement"])
@pytest.mark.parametrize("size", [1, 20])
async def test_shared_sessions_are_refused(open_path: Path, mode: str, size: int) -> None:
    async with (
        fresh_database() as url,
        _pgbouncer(open_path, url, mode, size) as pooled,
        open_database(pooled) as db,
    ):
        with pytest.raises(CoderError) as caught:
            await wait_for_database(db)
        assert caught.value.code == "database_pooled"
        assert "pool_mode = session" in caught.value.hint
