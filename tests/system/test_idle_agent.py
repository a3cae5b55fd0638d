"""An agent that waits: what it has loaded once it is connected and on the overlay, before anybody came.

There are as many agents as workspaces, on machines that were rented for something else, so what each keeps loaded is
listed here. Whoever needs more writes it down, with the thought whether it could be loaded when it is used.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from tests.kit.agents.scripted_agent import eventually, workspace_world

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(sys.platform != "linux", reason="signals of Linux"),
    pytest.mark.skipif("CODER_TEST_BINARY" in os.environ, reason="asks the interpreter, which a built program hides"),
]

LIBRARIES = {
    "_cffi_backend",
    "_openssl",
    "_sodium",
    "attr",
    "attrs",
    "cryptography",
    "google",
    "greenlet",
    "h11",
    "idna",
    "msgspec",
    "nacl",
    "outcome",
    "sniffio",
    "sortedcontainers",
    "trio",
    "trio_asyncio",
    "wsproto",
}
"""Of others: Trio and its parts, protobuf, the overlay's cryptography, HTTP and WebSocket."""
OF_TOOLS = {"_distutils_hack", "coverage", "typing_extensions", "_virtualenv", "__mp_main__", "pkg_resources"}
"""Brought by the environment a test runs in, not by the agent."""
ROOMS = {"agent", "api", "base", "cli", "domain", "mesh", "net", "rpc", "tailnet"}
NOT_IDLE = {
    "asyncssh",
    "bcrypt",
    "coder.agent.ssh.server",
    "coder.agent.network.http_api",
    "coder.agent.network.diagnostics",
    "coder.agent.network.file_bundle",
    "coder.agent.network.file_edits",
    "coder.agent.network.git_watch",
    "coder.agent.network.mcp_routes",
    "coder.agent.network.process_routes",
    "coder.agent.network.container_routes",
    "cryptography.x509",
    "cryptography.hazmat.primitives.serialization",
    "statistics",
    "fractions",
    "html",
    "http.client",
    "email",
    "argparse",
    "getpass",
    "sqlite3",
    "xml",
    "multiprocessing",
    "unittest",
    "coder.domain.hcl",
    "zoneinfo",
    "sysconfig",
}
"""Used by sessions, pages or other commands, and cheap enough to be loaded by them."""

AGENT = """
import os, signal, sys
def tell(*_):
    with open(os.environ["LOADED"] + ".new", "w") as out:
        out.write("\\n".join(name for name, module in sys.modules.items() if module is not None))
    os.rename(os.environ["LOADED"] + ".new", os.environ["LOADED"])
signal.signal(signal.SIGUSR1, tell)
from coder.cli.main import main
sys.exit(main(["agent"]))
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of all modules of a connected agent."""
    return trio.run(_modules_of_an_agent, tmp_path_factory.mktemp("idle"))


async def _modules_of_an_agent(folder: Path) -> set[str]:
    log, told = folder / "log", folder / "modules"
    async with workspace_world() as view:
        env = {name: value for name, value in os.environ.items() if not name.startswith("CODER_")}
        env |= {"PYTHONPATH": str(ROOT), "HOME": str(folder), "LOADED": str(told), "CODER_AGENT_TOKEN": view.token}
        env |= {"CODER_AGENT_URL": view.world.ctx.access_url, "CODER_AGENT_LOG_DIR": str(folder)}
        with log.open("wb") as out:
            process = await trio.lowlevel.open_process(
                [sys.executable, "-c", AGENT], env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
        try:

            async def idle() -> bool:
                assert process.poll() is None, log.read_text()
                return (await view.agent())["lifecycle_state"] == "ready" and "joined the overlay" in log.read_text()

            await eventually(idle, seconds=60)
            process.send_signal(signal.SIGUSR1)

            async def answered() -> bool:
                return told.exists()

            await eventually(answered, seconds=60)
        finally:
            process.terminate()
            with trio.CancelScope(shield=True):
                await process.wait()
    return set(told.read_text().split())


def test_libraries(loaded: set[str]) -> None:
    standard = sys.stdlib_module_names | {"__main__"}
    tops = {name.partition(".")[0] for name in loaded}
    assert tops - standard - LIBRARIES - OF_TOOLS - {"coder"} == set()


def test_rooms(loaded: set[str]) -> None:
    rooms = {name.split(".")[1] for name in loaded if name.startswith("coder.")}
    assert rooms <= ROOMS
    commands = {name for name in loaded if re.fullmatch(r"coder\.cli\.(?!core\.)(?:declarations\.)?\w+\.\w+", name)}
    assert {name for name in commands if not re.match(r"coder\.cli\.(?:declarations\.)?agents\b", name)} == set()


def test_modules_load_on_first_use(loaded: set[str]) -> None:
    assert loaded & NOT_IDLE == set()


def test_agent_was_connected(loaded: set[str]) -> None:
    """Otherwise the lists above would say nothing."""
    assert {"coder.mesh.node", "coder.agent.network.overlay", "trio", "google.protobuf"} <= loaded
