"""Machines attached by the init script, with what small machines have: one tool to fetch, one shell, few commands.

The program that /bin serves is this source tree behind a shell script, or what CODER_TEST_BINARY names.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio

from coder.domain.agents.init_scripts import init_script
from tests.kit.agents import AgentWorld, eventually, workspace_world
from tests.kit.certificates import Authority
from tests.kit.hostile import AuthProxy, serve_box

ROOT = Path(__file__).resolve().parents[2]
BASE = ("sh", "mktemp", "chmod", "head", "id", "sleep", "cat", "uname", "env")
"What the script and the program need beside something to fetch with; `env` is the served script's own."
NOBODY = 65534
pytestmark = [pytest.mark.system, pytest.mark.skipif(sys.platform != "linux", reason="the script of Linux")]


def tools(folder: Path, *names: str) -> str:
    """A PATH with these commands alone; skips where the machine lacks one."""
    folder.mkdir()
    for name in (*BASE, *names):
        found = shutil.which(name)
        if found is None:
            pytest.skip(f"{name} is not installed")
        (folder / name).symlink_to(found)
    return str(folder)


def serve_program(site: Path) -> None:
    """Puts a program for this machine where the server finds it."""
    (site / "bin").mkdir(parents=True)
    target = site / "bin/coder-linux-amd64"
    if built := os.environ.get("CODER_TEST_BINARY"):
        shutil.copyfile(built, target)
        return
    target.write_text(f'#!/bin/sh\nexport PYTHONPATH="{ROOT}"\nexec "{sys.executable}" -m coder "$@"\n')


@dataclass
class Attached:
    process: trio.Process
    log: Path


@asynccontextmanager
async def attaching(
    view: AgentWorld, folder: Path, path: str, *, shell: tuple[str, ...] = ("sh",), user: int | None = None,
    script: str = "", env: Mapping[str, str] | None = None,
) -> AsyncIterator[Attached]:  # fmt: skip
    """Runs the server's script as somebody would by hand; ends whatever it became."""
    script = script or (await view.world.get("/api/v2/init-script/linux/amd64", token="")).text
    home = folder / "home"
    home.mkdir(mode=0o755)
    if user is not None:
        os.chown(home, user, user)
    given = {"PATH": path, "HOME": str(home), "TMPDIR": str(home), "CODER_AGENT_TOKEN": view.token, **(env or {})}
    given |= {"CODER_AGENT_LOG_DIR": str(home), "CODER_AGENT_SCRIPT_DATA_DIR": str(home)}
    log = folder / "log"
    with log.open("wb") as out:
        process = await trio.lowlevel.open_process(
            [str(Path(path) / shell[0]), *shell[1:]], stdin=subprocess.PIPE, stdout=out, stderr=out, env=given,
            cwd="/", start_new_session=True, user=user, group=user,
        )  # fmt: skip
    assert process.stdin is not None
    await process.stdin.send_all(script.encode())
    await process.stdin.aclose()
    try:
        yield Attached(process, log)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        with trio.move_on_after(20) as scope, trio.CancelScope(shield=True):
            await process.wait()
        if scope.cancelled_caught:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def connected(view: AgentWorld, attached: Attached) -> None:
    async def look() -> bool:
        assert attached.process.poll() is None, attached.log.read_text()
        return bool((await view.agent())["status"] == "connected")

    try:
        await eventually(look, seconds=60)
    except trio.TooSlowError:
        raise AssertionError(attached.log.read_text()) from None


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for part in (tmp_path, *tmp_path.parents[:2]):
        part.chmod(0o755)  # others shall get there, too
    return tmp_path


@pytest.mark.parametrize(
    ("have", "shell"),
    [
        (("curl",), ("sh",)),
        (("wget",), ("sh",)),
        (("busybox",), ("busybox", "sh")),
        (("curl", "wget", "busybox"), ("sh",)),
    ],
    ids=["curl", "wget", "busybox", "all"],
)
async def test_with_only(have: tuple[str, ...], shell: tuple[str, ...], place: Path) -> None:
    path = tools(place / "tools", *have)
    serve_program(place / "site")
    async with workspace_world(site_dir=str(place / "site")) as view, attaching(view, place, path, shell=shell) as run:
        await connected(view, run)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
async def test_as_nobody(place: Path) -> None:
    """Whoever may not read this interpreter gets a program that says what it was called with instead."""
    path = tools(place / "tools", "curl")
    serve_program(place / "site")
    may_run = _readable_by_all(Path(sys.executable))
    said = place / "home/said"
    if not may_run and "CODER_TEST_BINARY" not in os.environ:
        (place / "site/bin/coder-linux-amd64").write_text(
            '#!/bin/sh\n[ "$1" = agent ] || { echo "Coder v0"; exit; }\n'
            f'echo "$(id -u) $CODER_AGENT_AUTH $CODER_AGENT_URL" >"{said}.new"\nmv "{said}.new" "{said}"\n'
        )
        (Path(path) / "mv").symlink_to("/bin/mv")
    async with (
        workspace_world(site_dir=str(place / "site")) as view,
        attaching(view, place, path, user=NOBODY) as attached,
    ):
        if may_run or "CODER_TEST_BINARY" in os.environ:
            await connected(view, attached)
            return

        async def looked() -> bool:
            return said.exists()

        await eventually(looked, seconds=30)
        assert said.read_text().split() == [str(NOBODY), "token", f"{view.world.ctx.access_url.rstrip('/')}/"]


def _readable_by_all(path: Path) -> bool:
    return all(part.stat().st_mode & 0o005 == 0o005 for part in (path.resolve(), *path.resolve().parents))


@pytest.mark.parametrize("tool", ["curl", "wget"])
async def test_with_an_authority_of_ones_own(tool: str, place: Path) -> None:
    path = tools(place / "tools", tool)
    serve_program(place / "site")
    authority = Authority(place)
    certificate, key = authority.issue("localhost")
    port = _free_port()
    settings: dict[str, Any] = {
        "site_dir": str(place / "site"), "tls_enable": True, "tls_address": f"127.0.0.1:{port}",
        "tls_cert_file": (certificate,), "tls_key_file": (key,), "access_url": f"https://localhost:{port}",
    }  # fmt: skip
    (place / "wgetrc").write_text(f"ca_certificate = {authority.file}\n")
    trust = {"SSL_CERT_FILE": authority.file, "WGETRC": str(place / "wgetrc")}
    async with workspace_world(**settings) as view, attaching(view, place, path, env=trust) as attached:
        await connected(view, attached)


async def test_behind_a_proxy_that_wants_a_password(place: Path) -> None:
    """Only the proxy knows where `coder.internal` is; authority and name are of the company's own."""
    path = tools(place / "tools", "curl")
    serve_program(place / "site")
    authority = Authority(place)
    certificate, key = authority.issue("coder.internal")
    port = _free_port()
    settings: dict[str, Any] = {
        "site_dir": str(place / "site"), "tls_enable": True, "tls_address": f"127.0.0.1:{port}",
        "tls_cert_file": (certificate,), "tls_key_file": (key,), "access_url": f"https://coder.internal:{port}",
    }  # fmt: skip
    proxy = AuthProxy(("127.0.0.1", port), "ana", "secret")
    async with workspace_world(**settings) as view, trio.open_nursery() as nursery:
        box = await nursery.start(serve_box, proxy)
        ways = {"SSL_CERT_FILE": authority.file, "HTTPS_PROXY": f"http://ana:secret@127.0.0.1:{box}"}
        ways["https_proxy"] = ways["HTTPS_PROXY"]
        async with attaching(view, place, path, env=ways) as attached:
            await connected(view, attached)
        assert set(proxy.tunnels) == {f"coder.internal:{port}"} and proxy.refused == 0
        nursery.cancel_scope.cancel()


async def test_a_server_without_a_program_and_a_machine_that_has_one(place: Path) -> None:
    """What somebody installed is used; the script of macOS is the same there."""
    path = tools(place / "tools", "curl")
    (place / "site/bin").mkdir(parents=True)
    serve_program(place / "elsewhere")
    installed = Path(path) / "coder"
    installed.write_bytes((place / "elsewhere/bin/coder-linux-amd64").read_bytes())
    installed.chmod(0o755)
    async with workspace_world(site_dir=str(place / "site"), cache_dir=place / "cache") as view:
        script = init_script("darwin", "arm64", view.world.ctx.access_url)
        assert script is not None
        async with attaching(view, place, path, script=script) as attached:
            await connected(view, attached)
            assert "using " in attached.log.read_text()


@pytest.mark.parametrize("system", ["linux", "darwin"])
async def test_a_server_without_a_program_says_what_to_do(system: str, place: Path) -> None:
    path = tools(place / "tools", "curl")
    (place / "site/bin").mkdir(parents=True)
    async with workspace_world(site_dir=str(place / "site"), cache_dir=place / "cache") as view:
        script = init_script(system, "arm64", view.world.ctx.access_url)
        assert script is not None
        async with attaching(view, place, path, script=script) as attached:

            async def told() -> bool:
                return "next try in 30 seconds" in attached.log.read_text()

            await eventually(told, seconds=20)
            assert (
                f"the server has no program at {view.world.ctx.access_url.rstrip('/')}/bin/" in attached.log.read_text()
            )
            assert attached.process.poll() is None, "it tries again"


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
