"""Machines attached by the init script, with what small machines have: one tool to fetch, one shell, few commands.

The program that /bin serves is this source tree behind a shell script, or what CODER_TEST_BINARY names.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from coder.domain.agents.init_scripts import init_script
from tests.kit.agents.attached_machine import NOBODY, attaching, connected, serve_program, tools
from tests.kit.agents.scripted_agent import eventually, workspace_world
from tests.kit.free_ports import free_port
from tests.kit.network.middleboxes import AuthProxy, serve_box
from tests.kit.stand_ins.certificates import Authority

pytestmark = [pytest.mark.system, pytest.mark.skipif(sys.platform != "linux", reason="the script of Linux")]


@pytest.fixture
def place(open_path: Path) -> Path:
    return open_path


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
        (made,) = (place / "home").glob("coder.??????")
        assert (made / "coder").exists()
    assert not made.exists(), "the agent has ended"


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

        await eventually(looked, seconds=60)
        assert said.read_text().split() == [str(NOBODY), "token", f"{view.world.ctx.access_url.rstrip('/')}/"]


def _readable_by_all(path: Path) -> bool:
    return all(part.stat().st_mode & 0o005 == 0o005 for part in (path.resolve(), *path.resolve().parents))


@pytest.mark.parametrize("tool", ["curl", "wget"])
async def test_private_certificate_authority(tool: str, place: Path) -> None:
    path = tools(place / "tools", tool)
    serve_program(place / "site")
    authority = Authority(place)
    certificate, key = authority.issue("localhost")
    port = free_port()
    settings: dict[str, Any] = {
        "site_dir": str(place / "site"),
        "tls_enable": True,
        "tls_address": f"127.0.0.1:{port}",
        "tls_cert_file": (certificate,),
        "tls_key_file": (key,),
        "access_url": f"https://localhost:{port}",
    }
    (place / "wgetrc").write_text(f"ca_certificate = {authority.file}\n")
    trust: dict[str, Any] = {"SSL_CERT_FILE": authority.file, "WGETRC": str(place / "wgetrc")}
    async with workspace_world(**settings) as view, attaching(view, place, path, env=trust) as attached:
        await connected(view, attached)


async def test_authenticating_proxy(place: Path) -> None:
    """Only the proxy knows where `coder.internal` is; authority and name are of the company's own."""
    path = tools(place / "tools", "curl")
    serve_program(place / "site")
    authority = Authority(place)
    certificate, key = authority.issue("coder.internal")
    port = free_port()
    settings: dict[str, Any] = {
        "site_dir": str(place / "site"),
        "tls_enable": True,
        "tls_address": f"127.0.0.1:{port}",
        "tls_cert_file": (certificate,),
        "tls_key_file": (key,),
        "access_url": f"https://coder.internal:{port}",
    }
    proxy = AuthProxy(("127.0.0.1", port), "ana", "secret")
    async with workspace_world(**settings) as view, trio.open_nursery() as nursery:
        box = await nursery.start(serve_box, proxy)
        ways: dict[str, Any] = {"SSL_CERT_FILE": authority.file, "HTTPS_PROXY": f"http://ana:secret@127.0.0.1:{box}"}
        ways["https_proxy"] = ways["HTTPS_PROXY"]
        async with attaching(view, place, path, env=ways) as attached:
            await connected(view, attached)
        assert set(proxy.tunnels) == {f"coder.internal:{port}"} and proxy.refused == 0
        nursery.cancel_scope.cancel()


async def test_installed_program_is_used(place: Path) -> None:
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
async def test_missing_program_is_explained(system: str, place: Path) -> None:
    path = tools(place / "tools", "curl")
    (place / "site/bin").mkdir(parents=True)
    async with workspace_world(site_dir=str(place / "site"), cache_dir=place / "cache") as view:
        script = init_script(system, "arm64", view.world.ctx.access_url)
        assert script is not None
        async with attaching(view, place, path, script=script) as attached:

            async def told() -> bool:
                return "next try in 30 seconds" in attached.log.read_text()

            await eventually(told, seconds=60)
            assert (
                f"the server has no program at {view.world.ctx.access_url.rstrip('/')}/bin/" in attached.log.read_text()
            )
            assert attached.process.poll() is None, "it tries again"
