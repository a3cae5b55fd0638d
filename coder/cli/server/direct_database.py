"""Selection and opening of the database for commands that work without a server.

They require an existing deployment. `find_database` checks that before any prompt; no command creates a database, a
directory or tables. Restoring into a new data directory is the exception, see `backup.py`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from coder.base.config import Inputs
from coder.base.errors import CoderError
from coder.cli.core import session
from coder.cli.core.command import Invocation
from coder.cli.core.options import Options
from coder.cli.declarations.server.direct_database import DatabaseOptions
from coder.cli.server.installed_service import find_service
from coder.cli.ui.output import say
from coder.coderd.store.engine.postgres import builtin_url, require_existing, run_postgres
from coder.net.aws_login import PASSWORD, with_login

if TYPE_CHECKING:
    from coder.coderd.config.settings import ServerConfig
    from coder.coderd.store.engine.database import Database

D_inv = TypeVar("D_inv", bound=DatabaseOptions)


@dataclass(frozen=True, slots=True)
class Target:
    """The deployment that a command acts on."""

    config: ServerConfig
    postgres_url: str = ""
    "URL of an external database; empty for the built-in one of `config`."
    description: str = ""
    "Text for the operator; empty for a database that the command line names."


def settings(invocation: Invocation[Options]) -> ServerConfig:
    """Return the configuration of the deployment to act on: path of the built-in database, key algorithms."""
    return choose_target(invocation).config


def choose_target(invocation: Invocation[Options]) -> Target:
    """Return the deployment to act on, whether or not its database exists.

    A named database or directory wins (`--postgres-url`, `--global-config` and their variables), then the database of
    this machine's service, then the directory of the operator.
    """
    from coder.coderd.config.reading import server_config

    own = server_config(Inputs(env=invocation.env), session.config_dir(invocation))
    options = invocation.options
    accepts_url = isinstance(options, DatabaseOptions) and any(item.name == "postgres_url" for item in options.declared)
    if isinstance(options, DatabaseOptions) and options.postgres_url:
        return Target(own, with_login(options.postgres_url, _method(invocation)))
    service = None if invocation.globals.config_dir else find_service()
    if service is None or service.unreadable:
        return Target(own)
    ours = {name: value for name, value in invocation.env.items() if name.startswith("CODER_")}
    config = server_config(Inputs(env={**service.environment, **ours}), service.data_dir)
    url = service.environment.get("CODER_PG_CONNECTION_URL", "") if accepts_url else ""
    if not url and not _has_database(config.data_path):
        return Target(own)
    place = "its external database" if url else str(service.data_dir)
    url = with_login(url, config.postgres_auth)
    return Target(config, url, f"Acting on the service coder, {place}.")


def _method(invocation: Invocation[Options]) -> str:
    """Return the method of login: of the command's own option, else of the server's (CODER_PG_AUTH)."""
    options = invocation.options
    own = options.postgres_auth if isinstance(options, DatabaseOptions) else PASSWORD
    return own if own != PASSWORD else invocation.env.get("CODER_PG_AUTH", "") or PASSWORD


def find_database(invocation: Invocation[DatabaseOptions]) -> ServerConfig:
    """Return the server's configuration after checking for a database. Raise CoderError `no_database` or
    `no_access`."""
    return find_target(invocation).config


def find_target(invocation: Invocation[DatabaseOptions]) -> Target:
    """Return the deployment to act on after checking for its database. Raise CoderError `no_database` or
    `no_access`."""
    target = choose_target(invocation)
    if not target.postgres_url:
        try:
            require_existing(target.config.data_path)
        except CoderError as error:
            if error.code not in {"no_database", "no_access"}:
                raise
            # Not a hint, which only terminals print: the mail of a nightly job must contain it too.
            raise CoderError(error.code, f"{error.message}\n{_service_hint(target.config.data_path)}") from None
    return target


def announce(target: Target) -> None:
    """Print what the command acts on, unless the command line names it."""
    if target.description:
        say(target.description)


def _has_database(path: Path) -> bool:
    """Return whether a directory has a built-in database that this user may read."""
    with contextlib.suppress(CoderError):
        require_existing(path)
        return True
    return False


def on_database(run: Callable[[Invocation[D_inv]], int]) -> Callable[[Invocation[D_inv]], int]:
    """Wrap a command so that it fails before any prompt if there is no database."""

    @functools.wraps(run)
    def checked(invocation: Invocation[D_inv]) -> int:
        announce(find_target(invocation))
        return run(invocation)

    return checked


def _service_hint(checked_path: Path) -> str:
    """Return the hint, with the data directory of this machine's service, if it has one."""
    advice = (
        "Set the server's data directory with --global-config or CODER_CONFIG_DIR and run this as the server's user; "
        "or set --postgres-url."
    )
    service = find_service()
    if service is None:
        return advice
    if service.data_dir == checked_path:
        return f"{advice} The service coder.service creates one here at its first start."
    return (
        f"{advice} The service coder.service of this machine stores its data in {service.data_dir}: "
        f"sudo -u {service.user} env CODER_CONFIG_DIR={service.data_dir} coder …"
    )


@contextlib.asynccontextmanager
async def open_target(target: Target, *, while_running: bool) -> AsyncIterator[str]:
    """Yield the given URL, or start the built-in database for the block.

    If a server uses the built-in database, yield the URL of the running one with `while_running`; raise CoderError
    `data_dir_in_use` otherwise.
    """
    if target.postgres_url:
        yield target.postgres_url
        return
    config = target.config
    async with contextlib.AsyncExitStack() as stack:
        try:
            url = await stack.enter_async_context(run_postgres(config.data_path, bin_dir=config.postgres_bin_dir))
        except CoderError as error:
            if error.code != "data_dir_in_use" or not while_running:
                raise
            url = builtin_url(config.data_path)
        yield url


@contextlib.asynccontextmanager
async def open_direct(
    invocation: Invocation[DatabaseOptions], *, while_running: bool = False
) -> AsyncIterator[Database]:
    """Open the deployment's database, migrated to this release's schema."""
    from coder.coderd.store.engine.migrate import migrate

    async with open_as_is(invocation, while_running=while_running) as database:
        await migrate(database)
        yield database


@contextlib.asynccontextmanager
async def open_as_is(
    invocation: Invocation[DatabaseOptions], *, while_running: bool = False
) -> AsyncIterator[Database]:
    """Open the deployment's database without migrating its schema."""
    from coder.coderd.store.engine.database import open_database
    from coder.coderd.store.engine.migrate import require_deployment

    target = find_target(invocation)
    async with open_target(target, while_running=while_running) as url, open_database(url) as database:
        await require_deployment(database)
        yield database
