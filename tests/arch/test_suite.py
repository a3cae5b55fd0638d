"""`scripts/test` divides the suite into runs that share the machine: every test is in exactly one of them."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, settings

from tests.kit import free_ports, hang_guard
from tests.kit.free_ports import PORTS, _claimed, free_port

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = (ROOT / "scripts/test").read_text()
RUN = re.compile(r"^(run_\w+)\(\) \{ run (.*); \}$", re.MULTILINE)
OF_EVERY_RUN = "${marks:+$marks and }"
"""Leaves out what only long runs do."""


def _runs() -> dict[str, argparse.Namespace]:
    """What each run is told about its tests, by the run's name."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-m", dest="mark")
    parser.add_argument("-n", dest="workers")
    parser.add_argument("--dist")
    parser.add_argument("--no-loadscope-reorder", action="store_true")
    parser.add_argument("--ignore", action="append", default=[])
    parser.add_argument("folders", nargs="*")
    return {
        name: parser.parse_args(shlex.split(words.replace(OF_EVERY_RUN, ""))) for name, words in RUN.findall(SCRIPT)
    }


def _takes(run: argparse.Namespace, path: Path) -> bool:
    def lies_in(folders: list[str]) -> bool:
        return any(path.is_relative_to(ROOT / folder) for folder in folders)

    return lies_in(run.folders or ["tests"]) and not lies_in(run.ignore)


def test_each_test_is_in_one_run() -> None:
    runs = _runs()
    assert {run.mark for run in runs.values()} == {"browser", "not browser"}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        marks = ["not browser", *["browser"][: "mark.browser" in path.read_text() and path != Path(__file__)]]
        for mark in marks:
            found = [name for name, run in runs.items() if run.mark == mark and _takes(run, path)]
            assert len(found) == 1, f"{path.relative_to(ROOT)}, {mark}: {found}"


def test_property_examples_have_no_deadline() -> None:
    """Nor is it chance which are tried, but in long runs and by hand (tests/conftest.py)."""
    assert settings.default is not None and settings.default.deadline is None
    assert HealthCheck.too_slow in settings.default.suppress_health_check
    told = [
        path.name
        for path in (ROOT / "tests").rglob("*.py")
        if re.search(r"deadline=(timedelta|[0-9])", path.read_text())
    ]
    assert told == []


def test_soak_tests_are_in_long_runs_only() -> None:
    for name, words in RUN.findall(SCRIPT):
        assert f'-m "{OF_EVERY_RUN}' in words, name


def test_every_run_is_started() -> None:
    for name in _runs():
        assert len(re.findall(rf"^ *(?:run_beside \w+ )?{name}(?: |$)(?!\()", SCRIPT, re.MULTILINE)) == 1, name


def test_assigned_ports_differ_between_runs() -> None:
    """Kernels give whoever asks for any port one from 32768 on, in every run of the suite."""
    assert PORTS.stop <= 32_768
    assert len(found := {free_port() for _ in range(20)}) > 10 and found <= set(PORTS)
    makers = [path.name for path in (ROOT / "tests").rglob("*.py") if re.search(r"def free_port\(", path.read_text())]
    assert makers == ["free_ports.py"]


def test_fixed_ports_are_reserved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_ports, "PORTS", range(free_ports.ECHO, free_ports.ECHO + 2))
    monkeypatch.setattr(free_ports, "_claimed", lambda _port: True)
    assert {free_port() for _ in range(20)} == {free_ports.ECHO + 1}


def test_ports_are_locked_by_run() -> None:
    assert not _claimed(free_port())


async def test_hanging_tests_time_out(request: pytest.FixtureRequest) -> None:
    assert next(request.node.iter_markers("trio")).kwargs["run"] is hang_guard.run
    assert float(request.config.getini("timeout")) > hang_guard.PATIENCE


def test_hanging_test_reports_its_location() -> None:
    async def wait_for_nothing() -> None:
        await trio.Event().wait()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait_for_nothing)

    for _ in range(2):  # the next one runs as if nothing had been
        with pytest.raises(hang_guard.HangsError, match=r"(?s)test_suite.*wait_for_nothing"):
            hang_guard.run(main, patience=0.05)

    async def answer() -> int:
        await trio.sleep(3600)
        return 7

    assert hang_guard.run(answer, patience=1, clock=trio.testing.MockClock(autojump_threshold=0)) == 7


def test_system_tests_use_the_given_program() -> None:
    """`./scripts/test --binary` would say of the built program what is true of the sources."""
    sources = re.compile(r"""-m["', ]+coder\b(?![.\w])""")
    for path in sorted((ROOT / "tests/system").glob("*.py")):
        assert not sources.search(path.read_text()), (
            f"{path.name}: program_under_test() of tests/kit/server/server_process.py"
        )
