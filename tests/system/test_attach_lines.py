"""Each program for Linux, attached by the line that the product prints for its platform (`./scripts/test --binary`).

The programs lie beside the one under test; a missing one is skipped. arm64 and armv7 run in a root of their own, by
qemu-user. `test_windows_program.py` attaches the program for Windows; those for macOS cannot run here.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import trio

from coder.domain.agents.init_scripts import attach_command
from tests.kit.agents.attached_machine import attaching, connected, tools
from tests.kit.agents.machine_roots import path_with, root_of
from tests.kit.agents.scripted_agent import workspace_world
from tests.kit.server.server_process import program_under_test

BUILT = os.environ.get("CODER_TEST_BINARY", "")
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not BUILT, reason="a built program is attached"),
]


async def attach_by_line(arch: str, folder: Path, path: str, root: Path | None, seconds: float) -> str:
    """Attach a machine whose token is in the line only; returns the processor that a command there says."""
    program = Path(BUILT).with_name(f"coder-linux-{arch}")
    (folder / "site/bin").mkdir(parents=True)
    shutil.copyfile(program, folder / "site/bin" / program.name)
    async with workspace_world(site_dir=str(folder / "site")) as view:
        line = attach_command(view.world.url, "linux", arch, view.token)
        env = {"CODER_AGENT_TOKEN": ""}
        async with attaching(view, folder, path, script=f"{line}\n", arch=arch, root=root, env=env) as attached:
            await connected(view, attached, seconds)
            session = {"CODER_URL": view.world.url, "CODER_SESSION_TOKEN": view.world.token}
            command = [*program_under_test(), "ssh", "dev", "uname -m"]
            done = await trio.run_process(command, env={**os.environ, **session}, capture_stdout=True, check=False)
            assert done.returncode == 0, attached.log.read_text()
            return done.stdout.decode().strip()


def has_program(arch: str) -> None:
    """Skips where no program was built."""
    program = Path(BUILT).with_name(f"coder-linux-{arch}")
    if not program.exists():
        pytest.skip(f"{program.name} was not built (build/build.py --platform linux-{arch})")


async def attach_emulated(arch: str) -> str:
    has_program(arch)
    if os.geteuid() != 0:
        pytest.skip("only root enters another root")
    root = root_of(arch)
    folder = root / "line"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        return await attach_by_line(arch, folder, path_with(root, "curl"), root, seconds=300)
    finally:
        shutil.rmtree(folder)


async def test_linux_amd64_attaches_natively(open_path: Path) -> None:
    has_program("amd64")
    assert await attach_by_line("amd64", open_path, tools(open_path / "tools", "curl"), None, seconds=60) == "x86_64"


async def test_linux_arm64_attaches_under_qemu() -> None:
    assert await attach_emulated("arm64") == "aarch64"


async def test_linux_armv7_attaches_under_qemu() -> None:
    assert await attach_emulated("armv7") == "armv7l"
