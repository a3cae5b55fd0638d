"""Code for Windows, run from these sources by Python for Windows under Wine: files, and the start of a newer program.

The short form of `test_windows_program.py`: no program is built. Half a minute, most of it Wine's first start. The
agent itself is imported where a program was built.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.wine.machine import Machine, distribution, missing_tools, windows_path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build"))
from desktop import collect, program  # noqa: E402

FOUND = distribution()
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(FOUND is None, reason="the build for Windows has fetched no Python"),
    pytest.mark.skipif(bool(missing_tools()), reason=f"not installed: {', '.join(missing_tools())}"),
]
LONG = pytest.mark.skipif("CODER_TEST_WINDOWS_PROGRAM" not in os.environ, reason="imports the agent: minutes")
FALLEN_BACK = "it ended with code 4 before it had connected"


Run = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Run checks of `windows_checks` in a folder with a space and a letter that is not ASCII."""
    assert FOUND is not None
    folder = tmp_path_factory.mktemp("windows")
    machine = Machine(folder)
    machine.set_up()
    python, packages = FOUND
    programs = folder / "python"
    programs.mkdir()
    for path in (*python.glob("*.exe"), *python.glob("*.dll"), *(python / "lib").glob("vcruntime*.dll")):
        shutil.copyfile(path, programs / path.name)
    program.make_stable_abi(programs)
    shutil.copytree(packages / "trio_asyncio", programs / "trio_asyncio")
    for name in collect.PATCHES:
        path = packages / f"{name.replace('.', '/')}.py"
        (programs / path.relative_to(packages)).write_bytes(collect.source_of(name, path))
    places = [windows_path(path) for path in (programs, ROOT, packages)]
    env = {
        "PYTHONPATH": ";".join(places),
        "PYTHONHOME": windows_path(python),
        "PYTHONPYCACHEPREFIX": windows_path(folder / "bytecode"),
        "PYTHONUTF8": "1",
        "WINEPATH": ";".join([places[0], windows_path(python / "lib")]),
    }

    def checked(*names: str) -> dict[str, Any]:
        work = machine.drive / f"ä {names[0]}"
        work.mkdir()
        words = ["-m", "tests.kit.wine.windows_checks", f"C:\\{work.name}", *names]
        done = subprocess.run(
            ["wine", str(programs / "python.exe"), *words],
            env={**machine.env, **env},
            stdin=subprocess.PIPE,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    yield checked
    machine.run("wineserver", "-k")


@pytest.fixture(scope="module")
def checks(run: Run) -> dict[str, Any]:
    return run("private_file", "open_flags", "held_file", "private_folder", "folder_above")


def test_secrets_have_own_list(checks: dict[str, Any]) -> None:
    result = checks["private_file"]
    assert result["users"] == result["expected"] and result["kept"] and result["inherits"] and result["named"]
    assert result["text"] == "text\n"


def test_private_file_opens_as_others(checks: dict[str, Any]) -> None:
    assert checks["open_flags"] == ["FileNotFoundError", "ok", "FileExistsError", "ab\nc"]


def test_held_file_is_replaced_when_free(checks: dict[str, Any]) -> None:
    assert checks["held_file"] == ["PermissionError", "new"]


def test_folder_of_one_user_is_private(checks: dict[str, Any]) -> None:
    assert checks["private_folder"][0] is False


def test_replaceable_parent_is_named(checks: dict[str, Any]) -> None:
    assert checks["folder_above"] == ["", "\\above, above \\above\\inner, can be replaced by other users"]


@LONG
@pytest.mark.timeout(900)
def test_agent_on_windows_from_sources(run: Run) -> None:
    """Its modules need minutes to compile, so all checks are one run: newer programs, and what it reads from others."""
    found = run("running_program", "locked_folder", "code_page", "successor")
    assert found == {
        "running_program": [True, True],
        "locked_folder": ["private", "locked once"],
        "code_page": ["utf-8", "oem", "oem", "utf-8", "né", "SIGINT", "SIGTERM", "SIGBREAK"],
        "successor": [False, "it could not be started", FALLEN_BACK, 7],
    }
