"""Commands that work on the database itself, without a server: which one it is, and how it is opened."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from coder.base.config import Inputs, Option
from coder.base.errors import CoderError
from coder.cli import session
from coder.cli.command import Invocation

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Database

POSTGRES_AUTH = Option(
    "postgres_auth",
    "postgres-connection-auth",
    "CODER_PG_CONNECTION_AUTH",
    default="password",
    choices=("password", "awsiamrds"),
    help="How to sign in at the database; awsiamrds is refused, as it is not supported.",
)


def postgres_url(env: str = "CODER_PG_CONNECTION_URL") -> Option:
    """The option that names the database."""
    return Option(
        "postgres_url",
        "postgres-url",
        env,
        secret=True,
        help="URL of the database; if left out the built-in one, whose server must be stopped.",
    )


def settings(invocation: Invocation) -> Any:
    """The server's configuration as its environment gives it: where the built-in database is, and how keys are made."""
    from coder.coderd.config.reading import server_config

    return server_config(Inputs(env=invocation.env), session.config_dir(invocation))


@contextlib.asynccontextmanager
async def database_url(invocation: Invocation) -> AsyncIterator[str]:
    """The URL given, else the built-in database, started for the block: no server may hold it meanwhile."""
    if invocation.options.get("postgres_auth") == "awsiamrds":
        raise CoderError("bad_option", "--postgres-connection-auth awsiamrds is not supported", "Use a password.")
    if invocation["postgres_url"]:
        yield invocation["postgres_url"]
        return
    from coder.coderd.store.engine.postgres import run_postgres

    config = settings(invocation)
    async with run_postgres(config.data_path, bin_dir=config.postgres_bin_dir) as url:
        yield url


@contextlib.asynccontextmanager
async def open_direct(invocation: Invocation) -> AsyncIterator[Database]:
    """The database, brought to this release's schema."""
    from coder.coderd.store.engine.database import open_database
    from coder.coderd.store.engine.migrate import migrate

    async with database_url(invocation) as url, open_database(url) as database:
        await migrate(database)
        yield database
