"""`coder upgrade --rollback`: exchanges the program and the one before the last upgrade."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from coder.base.errors import CoderError
from coder.base.version import BUILD_VERSION
from coder.cli.core.command import Invocation
from coder.cli.core.edition import is_slim
from coder.cli.declarations.program.upgrade import UpgradeOptions
from coder.cli.program.replacement import (
    Record,
    check_staged,
    identity,
    link_or_copy,
    previous_path,
    read_record,
    stage,
    swap,
    try_program,
    unchanged_on_failure,
)
from coder.cli.program.service_restart import finish_service
from coder.cli.server.installed_service import InstalledService
from coder.cli.ui.output import confirm, print_json, say
from coder.domain.agents.version_order import is_newer

if TYPE_CHECKING:
    from coder.cli.server.direct_database import Target

UNKNOWN = "an unknown version"
"""Version of an installed program that no longer starts, without a record of the upgrade."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a rollback would change: versions, and the newest schema revision that each program knows."""

    current: str
    target: str
    backup: str = ""
    "Backup of the database before its schema moved; empty without one."
    schema: str = ""
    "Of the current program; empty if unknown, or without a database on this machine."
    target_schema: str = ""

    @property
    def rejects_schema(self) -> bool:
        """Whether the target rejects a database that the current program has migrated."""
        if is_newer(self.target, self.current):
            return False
        if self.schema and self.target_schema:
            return is_newer_schema(self.schema, self.target_schema)
        return bool(self.backup)


def is_newer_schema(theirs: str, ours: str) -> bool:
    """Return whether a revision of the database's schema is newer; of revisions that are known."""
    return _number(theirs) > _number(ours)


def _number(revision: str) -> str:
    """Return a revision as text that is ordered as its number."""
    return revision.zfill(9)


def roll_back(
    invocation: Invocation[UpgradeOptions], program: Path, service: InstalledService | None, *, is_installed: bool
) -> int:
    """Exchange the program and the previous one, so that a second rollback returns to the upgrade. The previous one
    can do it, too (`coder.previous upgrade --rollback`), where the installed one no longer starts."""
    options, previous = invocation.options, previous_path(program)
    if not previous.exists():
        raise CoderError("no_previous_program", f"there is no {previous}: nothing was upgraded here")
    with unchanged_on_failure():
        began = identity(program)
        version, _ = try_program(previous)
    record = read_record(program)
    is_recorded = record is not None and record.version == version
    exchange = _exchange(program, version, record if is_recorded else None, is_installed=is_installed)
    if options.output == "text":
        _print_warning(invocation, exchange, is_recorded=is_recorded)
    if options.check or options.dry_run:
        _report(invocation, program, exchange, "check" if options.check else "dry-run")
        return 0
    confirm(options.yes, f"Replace {program} ({exchange.current}) with {version}?")
    with stage(program, began) as folder:
        new = folder / program.name
        link_or_copy(previous.resolve(), new)  # a link needs no space on a full disk
        check_staged(new, version, slim=True)
        done = Record(exchange.current, version, exchange.backup, exchange.schema, exchange.target_schema)
        swap(new, program, done, is_rollback=True)
    _report(invocation, program, exchange, "rolled-back")
    finish_service(invocation, program, service)
    return 0


def _exchange(program: Path, version: str, record: Record | None, *, is_installed: bool) -> Exchange:
    """Return the exchange with the previous program of this version, whose record is None if there is none of it."""
    current = BUILD_VERSION if is_installed else record.replaced_by if record else _reported(program)
    if record is None:
        return Exchange(current, version)
    schema, target_schema = record.replaced_by_schema, record.schema
    if target_schema and is_installed and not is_slim():  # the list may not have said, or another program lies here
        schema = max(schema, own_revision(), key=_number)
    return Exchange(current, version, record.backup, schema, target_schema)


def _reported(program: Path) -> str:
    try:
        return try_program(program)[0]
    except CoderError:
        return UNKNOWN


def own_revision() -> str:
    """Return the newest schema revision of this program."""
    from coder.cli.server import upgrade_backup  # the slim program has no server

    return upgrade_backup.own_revision()


def find_deployment(invocation: Invocation[UpgradeOptions]) -> Target | None:
    """Return the deployment of this machine or of the options, as `upgrade_backup` finds it."""
    from coder.cli.server import upgrade_backup  # the slim program has no server

    return upgrade_backup.find_deployment(invocation)


def _has_database(invocation: Invocation[UpgradeOptions]) -> bool:
    if is_slim():
        return False
    try:
        return find_deployment(invocation) is not None
    except CoderError:  # another user's
        return True


def _print_warning(invocation: Invocation[UpgradeOptions], exchange: Exchange, *, is_recorded: bool) -> None:
    """Print that the database is too new for the target, and the way back."""
    if not is_recorded and not is_newer(exchange.target, exchange.current) and _has_database(invocation):
        say(
            f"No record says which schema {exchange.target} knows. If it rejects the database, restore an earlier "
            "backup with `coder server restore`, or use --rollback again."
        )
    if not exchange.rejects_schema:
        return
    known = f" (schema {exchange.schema}, it knows {exchange.target_schema})" if exchange.schema else ""
    say(f"The upgrade changed the database's schema, and {exchange.target} rejects it{known}.")
    if not exchange.backup:
        say("The upgrade made no backup: restore an earlier one with `coder server restore`.")
        return
    say("After this, with the server stopped:")
    say(f"  coder server restore {exchange.backup}")
    say("What was written since the upgrade is not in that backup. `--rollback` again returns to the upgrade.")


def _report(invocation: Invocation[UpgradeOptions], program: Path, exchange: Exchange, action: str) -> None:
    """Print the result, or with --check and --dry-run what it would be."""
    if invocation.options.output == "json":
        print_json(
            {
                "action": action,
                "program": str(program),
                "current": exchange.current,
                "target": exchange.target,
                "backup": exchange.backup if exchange.rejects_schema else "",
                "schema_from": exchange.schema,
                "schema_to": exchange.target_schema,
                "schema_rejected": exchange.rejects_schema,
            }
        )
    else:
        verb = "is now" if action == "rolled-back" else "would be"
        sys.stdout.write(f"{program} {verb} {exchange.target}.\n")
