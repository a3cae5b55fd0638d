"""Import of an original Coder database into an empty one of this program (`coder server import`).

The source is read in one read-only transaction. Each batch of rows is written in a transaction that also stores the
progress, so that a stopped import continues and no row arrives twice. A dry run computes the same report at the source.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from coder.base.errors import CoderError
from coder.coderd.services.site.original_encryption import Reencryption
from coder.coderd.services.site.original_settings import our_settings
from coder.coderd.store.engine.migrate import migrate
from coder.coderd.store.original import checks, source
from coder.coderd.store.original.constraints import references
from coder.coderd.store.original.left_out import TABLES
from coder.coderd.store.original.progress import Progress, StepProgress
from coder.coderd.store.original.step import Step
from coder.coderd.store.original.steps import STEPS
from coder.coderd.store.original.target import open_target, require_ours, restart

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
    facts = await _checked(snapshot, reencryption, ignore_unknown)
    report = await _new_report(snapshot, facts, is_dry=True)
    for step in STEPS:
        rows, taken = await checks.count_rows(snapshot, step)
        problems = await checks.find_problems(snapshot, step) if taken else []
        kind = Kind(kind=step.label, table=step.tables[0], rows=rows, taken=taken)
        kind.not_taken = _outside(step, rows, taken)
        for problem in problems:
            kind.not_taken.append(NotTaken(reason=problem.reason, count=problem.count, examples=list(problem.examples)))
            kind.taken = max(kind.taken - problem.count, 0)
        report.kinds.append(kind)
        tell(step.label, rows, rows)
    if any(item.examples for kind in report.kinds for item in kind.not_taken):
        report.notes.append("Rows that refer to rows which are not taken are not taken either.")
    return report


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

    Raises CoderError: `schema_older`, `schema_newer`, `not_coder`, `sealed`, `target_in_use`, `target_not_empty`.
    """
    facts = await _checked(snapshot, reencryption, ignore_unknown)
    await require_ours(database)
    await migrate(database)
    async with open_target(database) as target:
        await target.require_stopped()
        progress = await target.read_progress()
        if progress is None:
            await _require_empty(target)
            progress = Progress(source=facts.identity, migration=facts.migration, started_at=now().isoformat())
            await target.begin(progress)
        elif progress.source != facts.identity:
            raise CoderError(
                "target_not_empty",
                f"the target contains an import of another deployment ({progress.source})",
                "Import into an empty database.",
            )
        report = await _new_report(snapshot, facts, is_dry=False)
        if progress.finished_at:
            return await _finished(snapshot, report, progress)
        for step in STEPS:
            report.kinds.append(await _copy(snapshot, target, step, progress, reencryption, tell))
        await target.save(progress, our_settings(await source.read_settings(snapshot), reencryption.sealer))
        progress.finished_at = now().isoformat()
        await target.finish(progress)
    stale = sorted(label for label, state in progress.steps.items() if state.is_stale)
    if stale:
        report.notes.append(
            f"The source changed while the import was interrupted. New rows were taken, but rows that changed there "
            f"keep their earlier values: {', '.join(stale)}. For an exact copy, import into an empty database."
        )
    return report


async def _checked(snapshot: Snapshot, reencryption: Reencryption, ignore_unknown: bool) -> SourceFacts:
    facts = await source.read_facts(snapshot)
    if not ignore_unknown:
        source.require_known(facts)
    reencryption.require(await checks.encryption_keys(snapshot))
    return facts


async def _require_empty(target: Target) -> None:
    content = await target.content()
    if content:
        raise CoderError(
            "target_not_empty",
            f"the target is not empty: it has {content}",
            "Import into a new database: name another one with --postgres-url, or a new directory with "
            "--global-config.",
        )


async def _new_report(snapshot: Snapshot, facts: SourceFacts, *, is_dry: bool) -> Report:
    report = Report(dry_run=is_dry, deployment_id=facts.identity, migration=facts.migration)
    for table, number in (await checks.count_left_out(snapshot)).items():
        report.not_imported.append(NotTaken(reason=TABLES[table], count=number, examples=[table]))
    report.notes = list(_notes(facts))
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


def _outside(step: Step, rows: int, taken: int) -> list[NotTaken]:
    left = rows - taken
    return [NotTaken(reason=step.left_out, count=left)] if left and step.left_out else []


async def _finished(snapshot: Snapshot, report: Report, progress: Progress) -> Report:
    """Return the report of an import that has finished earlier."""
    report.already_finished = True
    changed = []
    for step in STEPS:
        rows, taken = await checks.count_rows(snapshot, step)
        report.kinds.append(_kind(step, rows, taken, progress.of(step.label)))
        if await source.fingerprint(snapshot, step) != progress.of(step.label).fingerprint:
            changed.append(step.label)
    report.notes.append(f"This source was imported already, at {progress.finished_at}; nothing was changed.")
    if changed:
        report.notes.append(
            f"The source has changed since: {', '.join(changed)}. To import it again, use an empty database."
        )
    return report


async def _copy(
    snapshot: Snapshot, target: Target, step: Step, progress: Progress, reencryption: Reencryption, tell: Tell
) -> Kind:
    """Copy the rows of a step that are not there yet."""
    state, label = progress.of(step.label), step.label
    rows, wanted = await checks.count_rows(snapshot, step)
    present = await source.fingerprint(snapshot, step)
    was_begun = bool(state.fingerprint)
    continues = state.fingerprint == present and (state.is_done or bool(step.cursor and state.after))
    if not continues:
        restart(state, present)
    state.fingerprint = present
    if not state.is_done and wanted:
        await target.begin_step(step)
        sealed = {at: len(step.columns) + number for number, at in enumerate(_positions(step))}
        seen = state.taken + state.conflicts + sum(state.missing.values())
        selected = await source.remaining(snapshot, step, state.after)
        while batch := await selected.read(step.batch):
            converted = [reencryption.convert(row, sealed) if sealed else tuple(row) for row in batch]
            after = str(converted[-1][list(step.columns).index(step.cursor)]) if step.cursor else ""
            await target.write(step, converted, progress, after, again=was_begun and not continues)
            seen += len(batch)
            tell(label, seen, wanted)
    state.is_done = True
    return _kind(step, rows, wanted, state)


def _positions(step: Step) -> list[int]:
    names = list(step.columns)
    return [names.index(name) for name in step.sealed]


def _kind(step: Step, rows: int, wanted: int, state: StepProgress) -> Kind:
    kind = Kind(kind=step.label, table=step.tables[0], rows=rows, taken=state.taken)
    kind.not_taken = _outside(step, rows, wanted)
    tables = {item.target: item.tables[0] for item in reversed(STEPS)}
    for reference in references(step):
        if number := state.missing.get(reference.column):
            reason = checks.missing_reason(reference.column, tables[reference.table])
            kind.not_taken.append(NotTaken(reason=reason, count=number))
    if state.conflicts:
        kind.not_taken.append(NotTaken(reason=checks.CONFLICT, count=state.conflicts))
    return kind
