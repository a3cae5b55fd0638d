"""Metrics of faults, and scrapes while the database does not answer."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import asyncpg
import pytest
import trio

from coder.appproxy.http.served_certificates import read_expiries
from coder.appproxy.metrics.metric_families import Family, exposition
from coder.base.clock import FakeClock
from coder.coderd.config.settings import ServerConfig
from coder.coderd.services.foundation.database_clock import DatabaseClock
from coder.coderd.services.telemetry import metrics
from coder.coderd.services.telemetry.fault_metrics import FAULTS, set_faults
from coder.coderd.store.engine.availability import Availability, DatabaseAwayError
from tests.kit.server.server_in_process import running_coderd
from tests.kit.stand_ins.certificates import Authority


def lines_of(availability: Availability, clock: Any, config: ServerConfig) -> list[str]:
    context: Any = SimpleNamespace(db=SimpleNamespace(availability=availability), clock=clock, config=config)
    families = {name: Family(name, kind, text, tuple(labels.split())) for name, kind, labels, text in FAULTS}
    set_faults(context, families)
    return [line for line in exposition(families.values()).splitlines() if line[0] != "#"]


def test_nothing_is_wrong() -> None:
    clock = FakeClock()
    assert lines_of(Availability(clock.monotonic), clock, ServerConfig()) == [
        "coder_clock_skew_seconds 0.0",
        "coder_database_away_seconds 0.0",
        "coder_database_shortage 0.0",
    ]


def test_each_fault_has_its_value(tmp_path: Path) -> None:
    own, authority = FakeClock(), Authority(tmp_path)
    clock, availability = DatabaseClock(own, own.monotonic), Availability(own.monotonic)
    clock.note(own.now() - timedelta(minutes=1), own.now(), own.monotonic(), own.monotonic())
    availability.failed(asyncpg.DiskFullError())
    availability.failed(OSError())
    own.advance(7)
    certificate, key = authority.issue("coder.test")
    config = ServerConfig(tls_enable=True, tls_cert_file=(certificate, "missing"), tls_key_file=(key, "missing"))
    expiry = read_expiries([certificate])[certificate].timestamp()
    *lines, of_certificate = lines_of(availability, clock, config)
    assert lines == [
        "coder_clock_skew_seconds 60.0",
        "coder_database_away_seconds 7.0",
        "coder_database_shortage 1.0",
    ]
    name, _, value = of_certificate.rpartition(" ")
    assert name == f'coder_tls_certificate_not_after_seconds{{file="{certificate}"}}' and float(value) == expiry


async def test_scrape_needs_no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it there are no old values, and no zeros either, which would be other faults."""

    async def refuse(*_: Any) -> None:
        await trio.lowlevel.checkpoint()
        raise DatabaseAwayError(OSError())

    async def hang(*_: Any) -> None:
        await trio.sleep_forever()

    def named(page: str) -> set[str]:
        return {line.partition("{")[0].split()[0] for line in page.splitlines() if line[0] != "#"}

    async with running_coderd(first_user=True, prometheus_collect_agent_stats=True) as world:
        database, scrape = world.ctx.db, world.ctx.services.metrics.exposition
        whole = named(await scrape())
        present = metrics.OF_THE_DATABASE & whole
        assert {"coderd_provisionerd_num_daemons", "coderd_api_total_user_count"} <= present
        for read in (refuse, hang):
            with monkeypatch.context() as patch:
                patch.setattr(database, "read", read)
                patch.setattr(metrics, "DATABASE_TIMEOUT", 0.01)
                assert whole - named(await scrape()) == present
        with monkeypatch.context() as patch:
            patch.setattr(database.availability, "away_for", lambda: 30.0)
            page = await scrape()
            assert "coder_database_away_seconds 30.0" in page
            assert whole - named(page) == present
        assert named(await scrape()) >= whole
