"""Code for Windows, run from these sources by Python for Windows under Wine: files, and an agent that answers SSH.

The short form of `test_windows_program.py`: no program is built. Half a minute, most of it Wine's first start. Python
of this machine compiles the sources ahead, because under Wine that takes minutes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.kit.agents.scripted_agent import eventually, workspace_world
from tests.kit.wine.attached_program import over_ssh
from tests.kit.wine.machine import AGENT_OF_SOURCES, HERE, Machine, distribution, missing_tools, windows_path
from tests.kit.wine.programs import install_program

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build"))
from desktop import collect, program, sources  # noqa: E402

FOUND = distribution()
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(FOUND is None, reason="the build for Windows has fetched no Python"),
    pytest.mark.skipif(bool(missing_tools()), reason=f"not installed: {', '.join(missing_tools())}"),
]
FALLEN_BACK = "it ended with code 4 before it had connected"
NOT_COMPILED = "node_modules|test|tests|idlelib|tkinter|ensurepip|site-packages|coderd|dashboard"


@dataclass(frozen=True, slots=True)
class WindowsPython:
    """Python for Windows on a machine by Wine, which imports these sources."""

    machine: Machine
    program: Path
    env: dict[str, str]

    def run(self, *names: str) -> dict[str, Any]:
        """Run checks of `windows_checks` in a folder with a space and a letter that is not ASCII."""
        work = self.machine.drive / f"ä {names[0]}"
        work.mkdir()
        words = ["-m", "tests.kit.wine.windows_checks", f"C:\\{work.name}", *names]
        done = subprocess.run(
            ["wine", str(self.program), *words],
            env={**self.machine.env, **self.env},
            stdin=subprocess.PIPE,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        found: dict[str, Any] = json.loads(done.stdout)
        return found


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[WindowsPython]:
    assert FOUND is not None
    folder = tmp_path_factory.mktemp("windows")
    machine = Machine(folder)
    machine.set_up()
    distributed, packages = FOUND
    programs = folder / "python"
    programs.mkdir()
    for path in (
        *distributed.glob("*.exe"),
        *distributed.glob("*.dll"),
        *(distributed / "lib").glob("vcruntime*.dll"),
    ):
        shutil.copyfile(path, programs / path.name)
    program.make_stable_abi(programs)
    shutil.copytree(packages / "trio_asyncio", programs / "trio_asyncio")
    for name in collect.PATCHES:
        path = packages / f"{name.replace('.', '/')}.py"
        (programs / path.relative_to(packages)).write_bytes(collect.source_of(name, path))
    assert request.config.cache is not None
    bytecode = request.config.cache.mkdir("wine-bytecode")
    compile_ahead(bytecode, ROOT / "coder", packages, distributed / "lib")
    places = [windows_path(path) for path in (programs, ROOT, packages)]
    env = {
        "PYTHONPATH": ";".join(places),
        "PYTHONHOME": windows_path(distributed),
        "PYTHONPYCACHEPREFIX": windows_path(bytecode),
        "PYTHONUTF8": "1",
        "WINEPATH": ";".join([places[0], windows_path(distributed / "lib")]),
    }
    yield WindowsPython(machine, programs / "python.exe", env)
    machine.run("wineserver", "-k")
    shutil.rmtree(bytecode / folder.relative_to("/"), ignore_errors=True)  # of modules in `programs`


def compile_ahead(bytecode: Path, *folders: Path) -> None:
    """Compile sources that changed. Both systems name the results alike, because a prefix drops the drive. Sources of
    later or earlier versions of Python, which some packages have, do not compile."""
    excluded = f"^({'|'.join(re.escape(str(folder)) for folder in folders)})/(.*/)?({NOT_COMPILED})/"
    command = [*sources.host_python(), "-m", "compileall", "-q", "-q", "-x", excluded, *map(str, folders)]
    subprocess.run(command, env={**os.environ, "PYTHONPYCACHEPREFIX": str(bytecode)}, check=False)


@pytest.fixture(scope="module")
def checks(python: WindowsPython) -> dict[str, Any]:
    return python.run("private_file", "open_flags", "held_file", "private_folder", "folder_above")


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


def test_agent_on_windows_from_sources(python: WindowsPython) -> None:
    """All checks are one run, which imports the agent once: newer programs, and what it reads from others."""
    found = python.run("running_program", "locked_folder", "code_page", "successor")
    assert found == {
        "running_program": [True, True],
        "locked_folder": ["private", "locked once"],
        "code_page": ["utf-8", "oem", "oem", "utf-8", "né", "SIGINT", "SIGTERM", "SIGBREAK"],
        "successor": [False, "it could not be started", FALLEN_BACK, 7],
    }


async def test_windows_sources_answer_ssh(python: WindowsPython, tmp_path: Path) -> None:
    """The agent attaches; a command's input and output are bytes, and its exit code arrives."""
    machine, data = python.machine, b"\r\n\x1a\x00\xff" + os.urandom(1_000_000)
    copy, log = install_program(machine, "copy"), tmp_path / "log"
    async with workspace_world() as view:
        env = {
            **python.env,
            "PYTHONPATH": f"{windows_path(HERE)};{python.env['PYTHONPATH']}",  # its sitecustomize.py
            "CODER_AGENT_TOKEN": view.token,
            "CODER_AGENT_URL": view.world.url,
            "TEMP": "C:\\windows\\temp",
        }
        async with machine.running(["wine", str(python.program), *AGENT_OF_SOURCES], env, log) as process:

            async def connected() -> bool:
                assert process.poll() is None, log.read_text()
                return bool((await view.agent())["status"] == "connected")

            await eventually(connected, seconds=120)
            done = await over_ssh(view, tmp_path, "ssh", "dev", copy, data=data)
            assert (done.returncode, done.stdout == data) == (3, True), (done.stderr, log.read_text())
