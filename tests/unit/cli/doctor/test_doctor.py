"""`coder doctor` against a real server: with a session and its database, without a session, and without a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from coder.base.errors import CoderError
from coder.cli.core.parsing import parse
from coder.cli.declarations.doctor.doctor import DOCTOR
from coder.cli.doctor.doctor import run_check
from coder.cli.doctor.examination import Check, Examination
from coder.cli.doctor.findings import Finding
from tests.kit.programs.command_line import Result, run_cli
from tests.kit.server.server_in_process import running_coderd


async def doctor(home: Path, *words: str, **env: str) -> tuple[Result, dict[str, Any]]:
    done = await run_cli(["doctor", "--output", "json", *words], home=home, env=env)
    return done, {finding["name"]: finding for finding in json.loads(done.stdout)["findings"]}


async def test_healthy_deployment_is_examined(tmp_path: Path) -> None:
    async with running_coderd() as world:
        token = await world.first_user()
        database = world.ctx.config.postgres_url.reveal()
        done, found = await doctor(tmp_path, "--postgres-url", database, CODER_URL=world.url, CODER_SESSION_TOKEN=token)
        states = {name: finding["state"] for name, finding in found.items()}
        for name in ("name", "tcp", "http", "clock", "version", "session", "links", "database", "schema"):
            assert states[name] == "ok", (name, found[name])
        assert states["tls"] == "skipped"
        assert "PostgreSQL" in found["database"]["what"]
        assert found["provisioners"]["state"] == "error", "this server runs none"
        assert done.code == 1

        bare, found = await doctor(tmp_path, CODER_URL=world.url)
        assert bare.code == 0, bare.stdout
        assert found["session"]["state"] == "skipped" and "coder login" in found["session"]["next"]
        assert found["http"]["state"] == "ok"

        wrong, found = await doctor(
            tmp_path, CODER_URL=world.url, CODER_SESSION_TOKEN=f"{token}x", CODER_AGENT_TOKEN="x"
        )
        assert wrong.code == 1
        assert found["session"]["state"] == found["agent-token"]["state"] == "error"
        assert "Checking the session" in wrong.stderr


async def test_unreachable_server_fails(tmp_path: Path) -> None:
    done, found = await doctor(tmp_path, CODER_URL="http://127.0.0.1:1")
    assert done.code == 1
    assert found["tcp"]["state"] == "error" and found["tcp"]["next"]
    text = await run_cli(["doctor", "--url", "http://127.0.0.1:1"], home=tmp_path)
    assert "✘ TCP" in text.stdout and "→" in text.stdout and "failures" in text.stdout


async def test_no_deployment_is_said(tmp_path: Path) -> None:
    done, found = await doctor(tmp_path)
    assert done.code == 0
    assert "coder login" in found["name"]["next"]


async def _never(_examination: Examination) -> list[Finding]:
    await trio.sleep_forever()
    raise AssertionError


async def _break(_examination: Examination) -> list[Finding]:
    raise ValueError("odd")


async def _refuse(_examination: Examination) -> list[Finding]:
    raise CoderError("x", "refused")


@pytest.mark.parametrize(("run", "what"), [(_never, "no result within 9 s"), (_break, "odd"), (_refuse, "refused")])
async def test_failing_check_becomes_finding(run: Any, what: str, autojump_clock: trio.testing.MockClock) -> None:
    examination = Examination(parse(DOCTOR, [], {}))
    (finding,) = await run_check(Check("network", "Network", 9.0, run), examination)
    assert finding.state == "error" and what in finding.what and finding.next
