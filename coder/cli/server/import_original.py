"""`coder server import`: the database of an original Coder deployment becomes this one's."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec
import trio

from coder.base.errors import CoderError
from coder.base.exception_groups import single_failure
from coder.base.threads import run_trio
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.server.import_original import IMPORT, ServerImportOptions
from coder.cli.server.direct_database import Target, announce, choose_target, find_target
from coder.cli.ui.output import print_table, say
from coder.coderd.services.foundation.encryption_at_rest import read_keys
from coder.coderd.services.site.original_encryption import Reencryption
from coder.coderd.services.site.original_import import Report, check_source, dry_run, import_original
from coder.coderd.store.engine.database import open_database
from coder.coderd.store.engine.postgres import run_postgres
from coder.coderd.store.original.source import open_snapshot

if TYPE_CHECKING:
    from coder.coderd.services.site.original_import import Tell

_PAUSE = 2.0
"""Seconds between two lines of progress."""


@implements(IMPORT)
def _import(invocation: Invocation[ServerImportOptions]) -> int:
    options = invocation.options
    if not options.source_url:
        raise CoderError(
            "bad_option", "the original's database is required", "Name it with --from postgres://user@host/database."
        )
    report = run_trio(_run_until_signal, invocation)
    if report is None:
        say("Interrupted. " + ("Nothing was written." if options.dry_run else "Run the command again to continue."))
        raise KeyboardInterrupt
    if options.output == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(report)).decode() + "\n")
    else:
        _print(report)
    return 0


async def _run_until_signal(invocation: Invocation[ServerImportOptions]) -> Report | None:
    """Return the report, None after Ctrl-C or SIGTERM: a batch is rolled back, and a built-in database is stopped."""
    report, signalled = None, trio.Event()
    try:
        with single_failure():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_cancel_at_signal, nursery.cancel_scope, signalled)
                report = await _run(invocation)
                nursery.cancel_scope.cancel()
    except CoderError:
        # Ctrl-C in a terminal also ends the programs that create a built-in database.
        if not signalled.is_set():
            raise
    return report


async def _cancel_at_signal(scope: trio.CancelScope, signalled: trio.Event) -> None:
    """Cancel at the first signal; the next one ends the process as usual. Other threads than the main one get none."""
    if threading.current_thread() is not threading.main_thread():
        return
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        await anext(signals)
    signalled.set()
    scope.cancel()


async def _run(invocation: Invocation[ServerImportOptions]) -> Report:
    options = invocation.options
    if options.dry_run:
        keys = options.external_token_encryption_keys
        reencryption = _reencryption(keys or choose_target(invocation).config.external_token_encryption_keys)
        async with open_snapshot(options.source_url) as snapshot:
            return await dry_run(snapshot, reencryption, _progress(), ignore_unknown=options.ignore_unknown)
    target = _target(invocation)
    announce(target)
    reencryption = _reencryption(options.external_token_encryption_keys or target.config.external_token_encryption_keys)
    async with open_snapshot(options.source_url) as snapshot:
        # A source that cannot be imported must not leave a new built-in database behind.
        facts = await check_source(snapshot, reencryption, ignore_unknown=options.ignore_unknown)
        if facts.live_servers:
            say(
                f"The original is running ({', '.join(facts.live_servers)}): what it writes from now on is not "
                "imported, and an interrupted import cannot continue. Stop it first."
            )
        async with _target_url(target) as url, open_database(url) as database:
            return await import_original(
                snapshot,
                database,
                reencryption,
                lambda: datetime.now(UTC),
                _progress(),
                ignore_unknown=options.ignore_unknown,
            )


def _reencryption(keys: list[str] | tuple[str, ...]) -> Reencryption:
    texts = [text.strip() for text in keys if text.strip()]
    return Reencryption(read_keys(texts, "--external-token-encryption-keys"))


def _target(invocation: Invocation[ServerImportOptions]) -> Target:
    """Return the deployment to import into. A new data directory requires a name, as for `coder server restore`."""
    try:
        return find_target(invocation)
    except CoderError as error:
        if error.code != "no_database":
            raise
        if not invocation.globals.config_dir:
            message = (
                f"{error.message}\nTo import into a new directory, set it with --global-config or CODER_CONFIG_DIR."
            )
            raise CoderError(error.code, message) from None
        return choose_target(invocation)


@contextlib.asynccontextmanager
async def _target_url(target: Target) -> AsyncIterator[str]:
    if target.postgres_url:
        yield target.postgres_url
        return
    config = target.config
    async with run_postgres(config.data_path, bin_dir=config.postgres_bin_dir) as url:
        yield url


def _progress() -> Tell:
    """Return a function that prints the progress of long steps."""
    last = time.monotonic()

    def tell(kind: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _PAUSE:
            last = now
            say(f"{kind}: {done:,} of {total:,}")

    return tell


def _print(report: Report) -> None:
    taken = "would be taken" if report.dry_run else "taken"
    rows = [
        {
            "kind": kind.kind,
            "rows": kind.rows,
            taken: kind.taken,
            "not taken": sum(item.count for item in kind.not_taken),
        }
        for kind in report.kinds
        if kind.rows
    ]
    print_table(["kind", "rows", taken, "not taken"], rows)
    reasons = [
        f"  {kind.kind}: {item.count} rows: {item.reason}{_examples(item.examples)}"
        for kind in report.kinds
        for item in kind.not_taken
    ]
    if reasons:
        sys.stdout.write("\nNot taken:\n" + "\n".join(reasons) + "\n")
    changed = [
        f"  {kind.kind}: {item.count} rows: {item.reason}{_examples(item.examples)}"
        for kind in report.kinds
        for item in kind.changed
    ]
    if changed:
        sys.stdout.write("\nTaken without a value:\n" + "\n".join(changed) + "\n")
    if report.not_imported:
        lines = [f"  {', '.join(item.examples)}: {item.count} rows: {item.reason}" for item in report.not_imported]
        sys.stdout.write("\nTables that are not imported:\n" + "\n".join(lines) + "\n")
    for note in report.notes:
        sys.stdout.write(f"\n{note}\n")
    if report.dry_run:
        end = "Nothing was written."
    elif report.already_finished:
        end = "Nothing was left to import."
    else:
        end = "Imported. Start the server with the access URL of the original."
    sys.stdout.write(f"\nDeployment {report.deployment_id}, migration {report.migration} of the original. {end}\n")


def _examples(examples: list[str]) -> str:
    return f" (such as {', '.join(examples)})" if examples else ""
