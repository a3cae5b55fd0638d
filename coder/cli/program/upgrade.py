"""The command `coder upgrade`: for programs that were installed as one file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from coder.api.site.release_list import (
    LIST_NAME,
    MAX_LIST_SIZE,
    Release,
    find_release,
    newest_release,
    parse_release_list,
    releases_between,
)
from coder.base.errors import CoderError
from coder.base.own_binary import own_binary, own_name
from coder.base.quoted import quoted
from coder.base.release.signature import LONGEST_TEXT, SUFFIX, SUMS, PublicKey, verify_bytes
from coder.base.version import BUILD_VERSION
from coder.cli.core.command import Invocation, implements
from coder.cli.core.edition import is_slim
from coder.cli.core.session import with_tls_files
from coder.cli.declarations.program.upgrade import UPGRADE, UpgradeOptions
from coder.cli.program.managed_program import refuse_managed
from coder.cli.program.replacement import (
    Record,
    check_staged,
    identity,
    installed_path,
    stage,
    swap,
    unchanged_on_failure,
    write_file,
)
from coder.cli.program.rollback import find_deployment, is_newer_schema, own_revision, roll_back
from coder.cli.program.service_restart import finish_service
from coder.cli.program.verify import public_keys
from coder.cli.server.installed_service import InstalledService, find_service
from coder.cli.ui.output import confirm, print_json, say
from coder.domain.agents.version_order import canonical, is_newer
from coder.net.policy import DialPolicy
from coder.net.release_source import file_of, join_location, list_location, read_location

if TYPE_CHECKING:
    from coder.cli.server.direct_database import Target

MAX_PROGRAM_SIZE = 256 << 20
"""Bytes of a program (ours); the largest we build has a sixth of it."""
_NOTES_SHOWN = 20
"""Lines of a release's notes on a terminal; JSON has all."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What an upgrade would change."""

    location: str
    "Of the list."
    target: Release
    changes: Sequence[Release]
    "Releases whose notes apply, newest first."
    schema_from: str = ""
    "Schema revision of this program's server; empty without a database here."

    @property
    def schema_moves(self) -> bool:
        """Whether the new server will migrate a database of this machine; a list that does not say counts as yes."""
        return bool(self.schema_from) and self.target.schema_revision != self.schema_from

    @property
    def rejects_schema(self) -> bool:
        """Whether the target is too old for the database of this machine."""
        known = self.target.schema_revision
        return bool(self.schema_from) and bool(known) and is_newer_schema(self.schema_from, known)


@implements(UPGRADE)
def _run(invocation: Invocation[UpgradeOptions]) -> int:
    options = invocation.options
    own = refuse_managed(own_binary(), invocation.env)
    program, service = installed_path(own), find_service()
    if options.rollback:
        return roll_back(invocation, program, service, is_installed=own == program)
    if own != program:
        raise CoderError(
            "previous_program", f"this is the program before the last upgrade; run {program} upgrade, or use --rollback"
        )
    with unchanged_on_failure():
        began = identity(program)
    location = list_location(_setting(options.release_list, "CODER_RELEASE_LIST", service), LIST_NAME)
    listed = parse_release_list(read_location(location, _policies(invocation), MAX_LIST_SIZE)).releases
    target = _choose(listed, options.version)
    if target is None:
        _report(invocation, program, None, "none")
        return 0
    deployment = None if is_slim() else find_deployment(invocation)
    revision = "" if deployment is None else own_revision()
    plan = Plan(location, target, releases_between(listed, BUILD_VERSION, target), revision)
    if options.check:
        _report(invocation, program, plan, "check")
        return 0
    keys = public_keys(_setting(options.key, "CODER_RELEASE_KEY", service, required=False))
    if options.output == "text":
        _print_plan(program, plan)
    if not options.dry_run:
        confirm(options.yes, f"Replace {program} with {target.version}?")
    backup = ""
    with stage(program, began) as folder:
        new = folder / _program_name()
        write_file(new, _download(invocation, plan, keys))
        check_staged(new, target.version, slim=is_slim())
        if options.dry_run:
            _report(invocation, program, plan, "dry-run")
            return 0
        if deployment is not None and plan.schema_moves:
            backup = _save_database(deployment, options.backup_dir)
        swap(
            new,
            program,
            Record(BUILD_VERSION, target.version, backup, plan.schema_from, target.schema_revision),
        )
    _report(invocation, program, plan, "upgraded", backup)
    finish_service(invocation, program, service)
    return 0


def _setting(given: str, name: str, service: InstalledService | None, *, required: bool = True) -> str:
    """Return an option, or the setting of this machine's service. Raise CoderError if the list has no name."""
    value = given or (service.environment.get(name, "") if service is not None else "")
    if required and not value:
        raise CoderError(
            "release_list",
            "no list of releases is named",
            f"Use --release-list, or set {name} to the address or folder that your administrator publishes.",
        )
    return value


def _policies(invocation: Invocation[UpgradeOptions]) -> Callable[[str], DialPolicy]:
    return lambda origin: with_tls_files(DialPolicy(url=origin), invocation)


def _choose(listed: Sequence[Release], version: str) -> Release | None:
    """Return the release to install; None if this program is the newest. Raise CoderError for an unlisted version."""
    if not version:
        return newest_release(listed, BUILD_VERSION)
    found = find_release(listed, version)
    if found is None:
        versions = ", ".join(release.version for release in listed[:10]) or "no release"
        raise CoderError("release_unknown", f"the list has no {quoted(version)}; it has {versions}")
    return None if found.version == canonical(BUILD_VERSION) else found


def _save_database(deployment: Target, folder: str) -> str:
    from coder.cli.server.upgrade_backup import save_database

    say("Backing up the database, because its schema changes …")
    return str(save_database(deployment, folder, BUILD_VERSION))


def _program_name() -> str:
    """Return the name of this machine's program in a release: on Linux the slim one is a file of its own."""
    name = own_name()
    return name.replace("coder-linux", "coder-slim-linux") if is_slim() and sys.platform == "linux" else name


def _download(invocation: Invocation[UpgradeOptions], plan: Plan, keys: Sequence[PublicKey]) -> bytes:
    """Download the program, the checksums and their signature; return the verified bytes of the program. Raise
    CoderError."""
    base, name = join_location(plan.location, plan.target.folder), _program_name()

    def read(file: str, limit: int) -> bytes:
        return read_location(file_of(base, file), _policies(invocation), limit)

    sums, signature = read(SUMS, LONGEST_TEXT), read(SUMS + SUFFIX, LONGEST_TEXT)
    data = read(name, MAX_PROGRAM_SIZE)
    verify_bytes(name, data, sums, signature, keys)
    return data


def _print_plan(program: Path, plan: Plan) -> None:
    direction = "" if is_newer(plan.target.version, BUILD_VERSION) else " (an older release)"
    sys.stdout.write(f"{program}: {BUILD_VERSION} -> {plan.target.version}{direction}\n")
    for release in plan.changes:
        published = f", {release.published_at}" if release.published_at else ""
        sys.stdout.write(f"\n{release.version}{published}\n")
        lines = release.notes.strip().splitlines()
        sys.stdout.writelines(f"  {line}\n" for line in lines[:_NOTES_SHOWN])
        if len(lines) > _NOTES_SHOWN or release.notes_url:
            sys.stdout.write(f"  More: {release.notes_url or '--output json'}\n")
    if plan.schema_from:
        target = plan.target.schema_revision or "not listed"
        text = f"{plan.schema_from} -> {target}; the database is backed up first" if plan.schema_moves else "unchanged"
        if plan.rejects_schema:
            text += f". {plan.target.version} rejects it: restore an earlier backup with `coder server restore`"
        sys.stdout.write(f"\nSchema of the database: {text}.\n")
    sys.stdout.flush()


def _report(
    invocation: Invocation[UpgradeOptions], program: Path, plan: Plan | None, action: str, backup: str = ""
) -> None:
    """Print the result: what is available, or what was done."""
    if invocation.options.output == "json":
        print_json(_as_json(program, plan, action, backup))
    elif plan is None:
        sys.stdout.write(f"{BUILD_VERSION} is the newest release of the list.\n")
    elif action == "check":
        _print_plan(program, plan)
    elif action == "dry-run":
        sys.stdout.write(f"{plan.target.version} is verified and starts here. Nothing was changed.\n")
    else:
        sys.stdout.write(
            f"{program} is now {plan.target.version}. `coder upgrade --rollback` returns to {BUILD_VERSION}.\n"
        )
        if backup:
            sys.stdout.write(f"Backup of the database: {backup}\n")


def _as_json(program: Path, plan: Plan | None, action: str, backup: str) -> dict[str, object]:
    return {
        "action": action,
        "program": str(program),
        "current": BUILD_VERSION,
        "target": plan.target.version if plan is not None else "",
        "releases": [
            {
                "version": release.version,
                "published_at": release.published_at,
                "notes": release.notes,
                "notes_url": release.notes_url,
            }
            for release in (plan.changes if plan is not None else ())
        ],
        "schema_from": plan.schema_from if plan is not None else "",
        "schema_to": plan.target.schema_revision if plan is not None else "",
        "schema_moves": plan is not None and plan.schema_moves,
        "schema_rejected": plan is not None and plan.rejects_schema,
        "backup": backup,
    }
