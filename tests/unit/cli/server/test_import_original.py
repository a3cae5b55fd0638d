"""`coder server import`: what an operator sees."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from coder.base.errors import CoderError
from coder.base.threads import run_trio
from coder.cli.server import import_original
from tests.kit.original.database import execute, original_database
from tests.kit.original.deployment import DEPLOYMENT_ID
from tests.kit.original.schema import MIGRATION
from tests.kit.programs.command_line import Result, run_cli
from tests.kit.server.postgres_server import fresh_database


async def test_import_reports_rows(tmp_path: Path) -> None:
    async with original_database() as source, fresh_database(migrated=False) as target:

        async def run(*words: str) -> Result:
            return await run_cli(["server", "import", "--from", source, *words], home=tmp_path)

        dry = await run("--dry-run")
        assert dry.code == 0, dry.stderr
        assert dry.stdout.startswith("KIND")
        assert (
            "external_auth_links: 1 rows: user_id names a row of users that does not exist (such as provi1)"
            in dry.stdout
        )
        assert "licenses: 2 rows: this server needs no license" in dry.stdout
        assert f"Deployment {DEPLOYMENT_ID}, migration {MIGRATION} of the original. Nothing was written." in dry.stdout
        assert not await execute(target, "SELECT 1 FROM pg_tables WHERE schemaname = 'public'")

        done = await run("--postgres-url", target, "--output", "json")
        assert done.code == 0, done.stderr
        report = json.loads(done.stdout)
        assert report["deployment_id"] == DEPLOYMENT_ID
        users = next(kind for kind in report["kinds"] if kind["kind"] == "users")
        assert users == {"kind": "users", "table": "users", "rows": 4, "taken": 4, "not_taken": [], "changed": []}

        await execute(source, "UPDATE replicas SET stopped_at = NULL, updated_at = now(), hostname = 'box'", "SELECT 1")
        again = await run("--postgres-url", target)
        assert "Nothing was left to import." in again.stdout
        assert "The original is running (box, box): what it writes from now on is not imported" in again.stderr


async def test_refusals_name_next_step(tmp_path: Path) -> None:
    cases = {
        (): "the original's database is required",
        (
            "--from",
            "postgres://coder@127.0.0.1:1/coder",
            "--postgres-url",
            "postgres://x",
        ): "the original's database cannot be used",
        ("--from", "postgres://coder@127.0.0.1:1/coder"): "set it with --global-config",
        ("--from", "x", "--dry-run", "--external-token-encryption-keys", "short"): "not the base64 of 32 bytes",
    }
    for words, sentence in cases.items():
        done = await run_cli(["server", "import", *words], home=tmp_path)
        assert done.code == 1, words
        assert sentence in done.stderr, (words, done.stderr)


async def test_refused_source_creates_no_database(tmp_path: Path) -> None:
    async with fresh_database() as source:
        words = ["server", "import", "--from", source, "--global-config", str(tmp_path / "new")]
        done = await run_cli(words, home=tmp_path)
        assert done.code == 1
        assert "the schema public has no tables schema_migrations and users" in done.stderr
        assert not list(tmp_path.rglob("PG_VERSION"))


@pytest.mark.parametrize("fails", [False, True], ids=["cancelled", "initdb ended, too"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_cancels_import(number: signal.Signals, fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[str] = []

    async def import_slowly(_: object) -> None:
        await wait_all_tasks_blocked()
        signal.raise_signal(number)
        try:
            await trio.sleep_forever()
        finally:
            ends.append("rolled back")
            if fails:
                raise CoderError("postgres_failed", "initdb failed")

    monkeypatch.setattr(import_original, "_run", import_slowly)
    handler = signal.getsignal(number)
    run: Any = import_original._run_until_signal
    assert run_trio(run, None) is None
    assert ends == ["rolled back"]
    assert signal.getsignal(number) is handler


async def test_import_into_source_is_refused(tmp_path: Path) -> None:
    async with original_database() as source:
        env = {"CODER_PG_CONNECTION_URL": source}
        done = await run_cli(["server", "import", "--from", source], home=tmp_path, env=env)
        assert done.code == 1
        assert "the target is a database of the original Coder" in done.stderr
