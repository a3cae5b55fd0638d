"""Import of an original Coder database into an empty one of this program (`coder server import`).

The source is read in one read-only transaction. Each batch of rows is written in a transaction that also stores the
progress, so that a stopped import continues and no row arrives twice. A dry run computes the same report at the source.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from coder.base.errors import CoderError
from coder.coderd.services.site.original_encryption import Reencryption
from coder.coderd.services.site.original_settings import our_settings, settings_not_taken
from coder.coderd.store.original import checks, source
from coder.coderd.store.original.constraints import references
from coder.coderd.store.original.fingerprints import read_fingerprints, require_unchanged
from coder.coderd.store.original.left_out import TABLES
from coder.coderd.store.original.progress import Progress, StepProgress
from coder.coderd.store.original.step import Step
from coder.coderd.store.original.steps import STEPS
from coder.coderd.store.original.target import create_tables, open_target, require_usable

if TYPE_CHECKING:
    from datetime import datetime

    from coder.coderd.store.engine.database import Database
    from coder.coderd.store.original.source import Snapshot, SourceFacts
    from coder.coderd.store.original.target import Target

Tell = Callable[[str, int, int], None]
"""Receives the progress: the kind, its rows so far, all its rows."""


class NotTaken(msgspec.Struct, kw_only=True):
    """Rows that are not taken."""

    reason: str
    count: int
    examples: list[str] = []


class Kind(msgspec.Struct, kw_only=True):
    """Rows of one kind."""

    kind: str
    table: str
    """The original's table."""
    rows: int
    taken: int
    not_taken: list[NotTaken] = []
    changed: list[NotTaken] = []
    """Rows that are taken without a value."""


class Report(msgspec.Struct, kw_only=True):
    """Result of an import or of a dry run."""

    dry_run: bool
    already_finished: bool = False
    deployment_id: str
    migration: int
    kinds: list[Kind] = []
    not_imported: list[NotTaken] = []
    """Tables of the original with rows that are not imported: reason and count, the table as the example."""
    notes: list[str] = []
    """Sentences for the operator."""


async def dry_run(snapshot: Snapshot, reencryption: Reencryption, tell: Tell, *, ignore_unknown: bool) -> Report:
    """Return the report of an import without writing anything. Raises CoderError as the import does."""
    facts = await check_source(snapshot, reencryption, ignore_unknown=ignore_unknown)
    report = await _new_report(snapshot, facts, is_dry=True)
    for step in STEPS:
        with _naming(step):
            report.kinds.append(await _foretold(snapshot, step))
        tell(step.label, len(report.kinds), len(STEPS))
    if any(item.examples for kind in report.kinds for item in kind.not_taken):
        report.notes.append("Rows that refer to rows which are not taken are not taken either.")
    return report


async def _foretold(snapshot: Snapshot, step: Step) -> Kind:
    """Return what an import would take."""
    rows, taken = await checks.count_rows(snapshot, step)
    problems = await checks.find_problems(snapshot, step) if taken else []
    kind = Kind(kind=step.label, table=step.tables[0], rows=rows, taken=taken)
    await _explain(snapshot, step, kind, rows - taken)
    kind.not_taken += map(_row, problems)
    kind.taken = max(kind.taken - sum(problem.count for problem in problems), 0)
    return kind


@contextlib.contextmanager
def _naming(step: Step) -> Iterator[None]:
    """Add the step's name to errors."""
    try:
        yield
    except CoderError as error:
        raise CoderError(error.code, f"{step.label} cannot be imported", error.hint) from error


async def check_source(snapshot: Snapshot, reencryption: Reencryption, *, ignore_unknown: bool) -> SourceFacts:
    """Check that the source can be imported. Raises CoderError `schema_older`, `schema_newer`, `schema_dirty`,
    `not_coder`, `sealed`, `source_unreadable`, `database_failed`."""
    facts = await source.read_facts(snapshot)
    if not ignore_unknown:
        source.require_known(facts)
    reencryption.require(await checks.encryption_keys(snapshot))
    return facts


async def import_original(
    snapshot: Snapshot,
    database: Database,
    reencryption: Reencryption,
    now: Callable[[], datetime],
    tell: Tell,
    *,
    ignore_unknown: bool,
) -> Report:
    """Import everything, or continue an earlier import of the same source.

    Raises CoderError: `schema_older`, `schema_newer`, `not_coder`, `sealed`, `target_in_use`, `target_not_empty`,
    `target_encoding`, `source_changed`, `source_unreadable`, `database_failed`. Nothing is written before these checks.
    """
    facts = await check_source(snapshot, reencryption, ignore_unknown=ignore_unknown)
    await require_usable(database)
    async with open_target(database) as target:
        await target.require_stopped()
        progress = await target.read_progress()
        await _require_room(target, progress, facts)
        tables = await read_fingerprints(snapshot, tell)
        if progress:
            require_unchanged(progress.tables, tables)
        report = await _new_report(snapshot, facts, is_dry=False)
        if progress and progress.finished_at:
            return await _finished(snapshot, report, progress)
        await create_tables(database)
        # A server may have started while the source was read.
        await target.require_stopped()
        await _require_room(target, progress, facts)
        if progress is None:
            started_at = now().isoformat()
            progress = Progress(source=facts.identity, migration=facts.migration, started_at=started_at, tables=tables)
            await target.begin(progress)
        for step in STEPS:
            with _naming(step):
                report.kinds.append(await _copy(snapshot, target, step, progress, reencryption, tell))
        progress.finished_at = now().isoformat()
        await target.finish(progress, our_settings(await source.read_settings(snapshot), reencryption.sealer))
    return report


async def _require_room(target: Target, progress: Progress | None, facts: SourceFacts) -> None:
    """Require an empty target, or one with an earlier import of this source. Raises CoderError `target_not_empty`."""
    if progress and progress.source != facts.identity:
        raise CoderError(
            "target_not_empty",
            f"the target contains an import of another deployment ({progress.source})",
            "Import into an empty database.",
        )
    content = "" if progress else await target.content()
    if content:
        raise CoderError(
            "target_not_empty",
            f"the target is not empty: it has {content}",
            "Import into a new database: name another one with --postgres-url, or a new directory with "
            "--global-config. To share a database with another program, choose an own schema with "
            "?search_path=NAME in the URL.",
        )


async def _new_report(snapshot: Snapshot, facts: SourceFacts, *, is_dry: bool) -> Report:
    report = Report(dry_run=is_dry, deployment_id=facts.identity, migration=facts.migration)
    for table, number in (await checks.count_left_out(snapshot)).items():
        report.not_imported.append(NotTaken(reason=TABLES[table], count=number, examples=[table]))
    report.notes = list(_notes(facts))
    if names := settings_not_taken(await source.read_settings(snapshot)):
        report.notes.append(f"Settings of the site that are not taken: {', '.join(names)}.")
    return report


def _notes(facts: SourceFacts) -> list[str]:
    notes = []
    if facts.live_servers:
        notes.append(
            f"The original is running ({', '.join(facts.live_servers)}). What it writes after this moment is not "
            "imported: stop it before the final import."
        )
    if facts.running_jobs:
        notes.append(
            f"{len(facts.running_jobs)} jobs are queued or running at the original: "
            f"{'; '.join(facts.running_jobs[:10])}. Wait until they have finished: "
            "a running build's result is not imported, and queued jobs run again here."
        )
    if facts.pending_messages:
        notes.append(
            f"{facts.pending_messages} messages wait at the original to be sent; this server does not send them."
        )
    if facts.open_restarts:
        notes.append(f"{facts.open_restarts} restarts wait for their second build; restart these workspaces again.")
    if facts.licenses:
        notes.append(f"{facts.licenses} licenses were not imported: this server needs none.")
    if facts.unknown:
        notes.append(f"Left out, because this release does not know them: {', '.join(facts.unknown)}.")
    return notes


async def _explain(snapshot: Snapshot, step: Step, kind: Kind, left: int) -> None:
    """Add the reasons for the rows that the step leaves out, and for values that it does not take."""
    kind.not_taken += map(_row, await checks.find_outside(snapshot, step, left))
    kind.changed = [_row(item) for item in await checks.find_changes(snapshot, step)]


def _row(problem: checks.NotTaken) -> NotTaken:
    return NotTaken(reason=problem.reason, count=problem.count, examples=list(problem.examples))


async def _finished(snapshot: Snapshot, report: Report, progress: Progress) -> Report:
    """Return the report of an import that has finished earlier."""
    report.already_finished = True
    for step in STEPS:
        rows, taken = await checks.count_rows(snapshot, step)
        report.kinds.append(await _kind(snapshot, step, rows, taken, progress.of(step.label)))
    report.notes.append(f"This source was imported already, at {progress.finished_at}; nothing was changed.")
    return report


async def _copy(
    snapshot: Snapshot, target: Target, step: Step, progress: Progress, reencryption: Reencryption, tell: Tell
) -> Kind:
    """Copy the rows of a step that are not there yet. Without a cursor an interrupted step is read from the start."""
    label = step.label
    rows, wanted = await checks.count_rows(snapshot, step)
    state = progress.of(label)
    again = bool(state.seen and not step.cursor and not state.is_done)
    if again:
        state = progress.steps[label] = StepProgress()
    if not state.is_done and wanted:
        await target.begin_step(step)
        sealed = {at: len(step.columns) + number for number, at in enumerate(_positions(step))}
        seen = state.seen
        selected = await source.remaining(snapshot, step, state.after)
        while batch := await selected.read(step.batch):
            converted = [reencryption.convert(row, sealed) if sealed else tuple(row) for row in batch]
            after = str(converted[-1][list(step.columns).index(step.cursor)]) if step.cursor else ""
            await target.write(step, converted, progress, after, again=again)
            seen += len(batch)
            tell(label, seen, wanted)
    state.is_done = True
    return await _kind(snapshot, step, rows, wanted, state)


def _positions(step: Step) -> list[int]:
    names = list(step.columns)
    return [names.index(name) for name in step.sealed]


async def _kind(snapshot: Snapshot, step: Step, rows: int, wanted: int, state: StepProgress) -> Kind:
    kind = Kind(kind=step.label, table=step.tables[0], rows=rows, taken=state.taken)
    await _explain(snapshot, step, kind, rows - wanted)
    tables = {item.target: item.tables[0] for item in reversed(STEPS)}
    for reference in references(step):
        if number := state.missing.get(reference.column):
            reason = checks.missing_reason(reference.column, tables[reference.table])
            kind.not_taken.append(NotTaken(reason=reason, count=number))
    if state.conflicts:
        kind.not_taken.append(NotTaken(reason=checks.CONFLICT, count=state.conflicts))
    return kind
