"""Selection and opening of the database for commands that work without a server.

They require an existing deployment. `find_database` checks that before any prompt; no command creates a database, a
directory or tables. Restoring into a new data directory is the exception, see `backup.py`.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from coder.base.config import Inputs
from coder.base.errors import CoderError
from coder.cli.core import session
from coder.cli.core.command import Invocation
from coder.cli.core.options import Options
from coder.cli.declarations.server.direct_database import DatabaseOptions
from coder.coderd.store.engine.postgres import require_existing, run_postgres

if TYPE_CHECKING:
    from coder.coderd.config.settings import ServerConfig
    from coder.coderd.store.engine.database import Database

D_inv = TypeVar("D_inv", bound=DatabaseOptions)
_UNITS = tuple(
    Path(folder) / "coder.service"
    for folder in ("/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
)
_SERVICE_DATA = Path("/var/lib/coder")


def settings(invocation: Invocation[Options]) -> ServerConfig:
    """Return the server's configuration from its environment: path of the built-in database, key algorithms."""
    from coder.coderd.config.reading import server_config

    return server_config(Inputs(env=invocation.env), session.config_dir(invocation))


def find_database(invocation: Invocation[DatabaseOptions]) -> ServerConfig:
    """Return the server's configuration after checking for a database. Raise CoderError `no_database` or
    `no_access`."""
    config = settings(invocation)
    if not invocation.options.postgres_url:
        try:
            require_existing(config.data_path)
        except CoderError as error:
            if error.code not in {"no_database", "no_access"}:
                raise
            # Not a hint, which only terminals print: the mail of a nightly job must contain it too.
            raise CoderError(error.code, f"{error.message}\n{_service_hint(config.data_path)}") from None
    return config


def on_database(run: Callable[[Invocation[D_inv]], int]) -> Callable[[Invocation[D_inv]], int]:
    """Wrap a command so that it fails before any prompt if there is no database."""

    @functools.wraps(run)
    def checked(invocation: Invocation[D_inv]) -> int:
        find_database(invocation)
        return run(invocation)

    return checked


def _service_hint(checked_path: Path) -> str:
    """Return the hint, with the data directory of this machine's service, if it has one."""
    advice = (
        "Set the server's data directory with --global-config or CODER_CONFIG_DIR and run this as the server's user; "
        "or set --postgres-url."
    )
    service_path = _service_data_path()
    if service_path is None:
        return advice
    if service_path == checked_path:
        return f"{advice} The service coder.service creates one here at its first start."
    return (
        f"{advice} The service coder.service of this machine stores its data in {service_path}: "
        f"sudo -u coder env CODER_CONFIG_DIR={service_path} coder …"
    )


def _service_data_path() -> Path | None:
    """Return the data directory of the packaged service; None if this machine has no such service."""
    for unit in _UNITS:
        with contextlib.suppress(OSError):
            match = re.search(r"CODER_CONFIG_DIR=([^\s\"]+)", unit.read_text(encoding="utf-8", errors="replace"))
            return Path(match[1]) if match else _SERVICE_DATA
    return _SERVICE_DATA if _SERVICE_DATA.exists() else None


@contextlib.asynccontextmanager
async def database_url(invocation: Invocation[DatabaseOptions]) -> AsyncIterator[str]:
    """Return the given URL, or start the built-in database for the block; no server may use it meanwhile."""
    if invocation.options.postgres_auth == "awsiamrds":
        raise CoderError("bad_option", "--postgres-connection-auth awsiamrds is not supported", "Use a password.")
    if invocation.options.postgres_url:
        yield invocation.options.postgres_url
        return
    config = find_database(invocation)
    async with run_postgres(config.data_path, bin_dir=config.postgres_bin_dir) as url:
        yield url


@contextlib.asynccontextmanager
async def open_direct(invocation: Invocation[DatabaseOptions]) -> AsyncIterator[Database]:
    """Open the deployment's database, migrated to this release's schema."""
    from coder.coderd.store.engine.migrate import migrate

    async with open_as_is(invocation) as database:
        await migrate(database)
        yield database


@contextlib.asynccontextmanager
async def open_as_is(invocation: Invocation[DatabaseOptions]) -> AsyncIterator[Database]:
    """Open the deployment's database without migrating its schema."""
    from coder.coderd.store.engine.database import open_database
    from coder.coderd.store.engine.migrate import require_deployment

    async with database_url(invocation) as url, open_database(url) as database:
        await require_deployment(database)
        yield database
