"""The order of the suite: files that take long begin first, so that no worker ends alone with one of them.

A test that hangs fails after the time in `tests/kit/hang_guard.py`, or in pyproject.toml where no trio runs; soak tests
are long on purpose.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.kit import hang_guard

LONG = (
    "test_workspace_permissions.py",
    "test_recorded_builds.py",
    "test_template_permissions.py",
    "test_every_role.py",
    "test_foreign_ids.py",
    "test_recorded_imports.py",
    "test_recorded_cli.py",
    "test_permissions.py",
    "test_openapi.py",
    "test_every_parser.py",
)
"""Names of files, longest first."""

_OURS = ("CODER_TEST_", "CODER_BENCH_", "CODER_HELM", "CODER_PYTHON", "CODER_VENV")
"""How variables begin that speak to the suite and its tools."""


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A new folder that other users reach, too: each session that begins closes what the others' `tmp_path` lies in."""
    with tempfile.TemporaryDirectory(prefix="coder-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def pytest_configure(config: pytest.Config) -> None:
    """A suite started in the background (nohup, `&` of a script) inherits signals that are ignored, and so would every
    program it starts; tests that send them would wait for nothing."""
    for name in [name for name in os.environ if name.startswith("CODER_") and not name.startswith(_OURS)]:
        del os.environ[name]  # settings of whoever runs the suite
    os.environ["CODER_AGENT_DEVCONTAINERS_ENABLE"] = "false"  # nor do their dev containers get agents of tests
    for number, action in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, action)
    if signal.getsignal(signal.SIGQUIT) is signal.SIG_IGN:
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    # Hypothesis gives an example 200 ms, which a machine with much else to do passes. Which are tried is chance in long
    # runs and by hand alone: where a run is to say whether a change is good, they are the same each time.
    alike = "not soak" in config.option.markexpr
    settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=alike)
    settings.load_profile("suite")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if moving := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        raise pytest.UsageError(f"names of tests that are others in every process: {moving}")
    places = {name: number for number, name in enumerate(LONG)}
    for item in items:
        if item.get_closest_marker("soak"):
            item.add_marker(pytest.mark.timeout(0))
        elif item.get_closest_marker("trio"):
            item.add_marker(pytest.mark.trio(run=hang_guard.run), append=False)  # the first one says what runs a test
    items.sort(key=lambda item: places.get(item.path.name, len(LONG)))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Print no stacks of a soak test that takes long: printing those of running threads can crash the process."""
    if item.get_closest_marker("soak"):
        faulthandler.cancel_dump_traceback_later()


def pytest_collection_finish() -> None:
    """What was loaded for the tests stays to the end: the collector need not follow it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 10, 10)
