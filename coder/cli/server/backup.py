"""`coder server backup` and `restore`: save and restore a deployment's database as one file."""

from __future__ import annotations

import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from coder.base.errors import CoderError
from coder.base.threads import run_trio
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.server.backup import BACKUP, RESTORE, ServerBackupOptions, ServerRestoreOptions
from coder.cli.server.direct_database import Target, announce, choose_target, find_target, open_target
from coder.cli.ui.output import confirm
from coder.coderd.store.engine import backup
from coder.coderd.store.engine.backup import Manifest, Programs, load_backup, write_backup
from coder.coderd.store.engine.postgres import put_back, run_postgres, set_aside

if TYPE_CHECKING:
    from coder.coderd.config.settings import ServerConfig


@implements(BACKUP)
def _backup(invocation: Invocation[ServerBackupOptions]) -> int:
    deployment = find_target(invocation)
    target = (
        Path(invocation.options.output or f"coder-{datetime.now(UTC):%Y%m%d-%H%M%S}.backup").expanduser().absolute()
    )
    if target.exists():
        raise CoderError("exists", f"{target} is there already", "Choose another name.")
    announce(deployment)
    manifest = back_up(deployment, target)
    sys.stdout.write(
        f"{target}: {sum(manifest.rows.values())} rows of {len(manifest.rows)} tables, "
        f"{target.stat().st_size / 1e6:.1f} MB, restored once to check it.\n"
    )
    return 0


def back_up(deployment: Target, target: Path) -> Manifest:
    """Write the backup of a deployment to a new file and check it. Raises CoderError, OSError."""
    config = deployment.config
    programs = Programs(config.data_path, config.postgres_bin_dir)

    async def main() -> Manifest:
        async with open_target(deployment, while_running=True) as url:
            return await write_backup(url, target, programs, datetime.now(UTC).isoformat(timespec="seconds"))

    return run_trio(main)


@implements(RESTORE)
def _restore(invocation: Invocation[ServerRestoreOptions]) -> int:
    deployment, is_new = _restore_target(invocation)
    announce(deployment)
    config, url = deployment.config, deployment.postgres_url
    programs = backup.Programs(config.data_path, config.postgres_bin_dir)
    database = "the given database" if url else f"the database of {config.data_path}"
    with tempfile.TemporaryDirectory(prefix="coder-restore-") as folder:
        dump = Path(folder) / "database.dump"
        manifest = backup.read_backup(Path(invocation.args[0]).expanduser(), dump)
        sys.stdout.write(f"Backup of {manifest.made_at}, {manifest.version}, {sum(manifest.rows.values())} rows.\n")
        question = f"Create {database} from it?" if is_new else f"Replace {database} with it?"
        confirm(invocation.options.yes, question)
        previous_data = run_trio(_replace, url, config, programs, dump, manifest)
    sys.stdout.write(f"Restored into {database}.\n")
    if previous_data is not None:
        sys.stdout.write(f"What was there before is in {previous_data}; remove it after checking the result.\n")
    return 0


def _restore_target(invocation: Invocation[ServerRestoreOptions]) -> tuple[Target, bool]:
    """Return the deployment, and whether its data directory has no database yet.

    A new data directory requires a name (`--global-config`, CODER_CONFIG_DIR): the default directory differs per user,
    and a deployment restored there is not the one that a service runs.
    """
    try:
        return find_target(invocation), False
    except CoderError as error:
        if error.code != "no_database":
            raise
        if not invocation.globals.config_dir:
            message = (
                f"{error.message}\nTo restore into a new directory, set it with --global-config or CODER_CONFIG_DIR."
            )
            raise CoderError(error.code, message) from None
        return choose_target(invocation), True


async def _replace(
    external: str,
    config: ServerConfig,
    programs: Programs,
    dump: Path,
    manifest: Manifest,
) -> Path | None:
    if external:
        await load_backup(external, dump, manifest, programs)
        return None
    previous_data = set_aside(config.data_path, f"data-before-{datetime.now(UTC):%Y%m%d-%H%M%S}")
    try:
        async with run_postgres(config.data_path, bin_dir=config.postgres_bin_dir) as url:
            await load_backup(url, dump, manifest, programs)
    except BaseException:
        put_back(config.data_path, previous_data)
        raise
    return previous_data
