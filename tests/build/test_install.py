"""/install.sh run for real against a server, and the Debian package installed into a root of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from coder.base.version import BUILD_VERSION
from tests.kit.coderd import running_coderd

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build"))
import deb

PROGRAM = b"#!/bin/sh\necho installed\n"
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is needed")
needs_dpkg = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is needed")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Any]:
    (tmp_path / "bin").mkdir()
    for name in ("amd64", "arm64", "armv7"):
        (tmp_path / f"bin/coder-linux-{name}").write_bytes(PROGRAM)
    async with running_coderd(site_dir=str(tmp_path)) as world:
        yield world


async def install(script: str, home: Path, *args: str, path: str = os.environ["PATH"]) -> tuple[int, str]:
    env = {"HOME": str(home), "PATH": path}
    done = await trio.run_process(
        ["sh", "-s", "--", *args], stdin=script.encode(), env=env, check=False, capture_stdout=True,
        stderr=subprocess.STDOUT,
    )  # fmt: skip
    return done.returncode, done.stdout.decode()


@needs_curl
async def test_standalone(server: Any, tmp_path: Path) -> None:
    script = (await server.get("/install.sh", token="")).text
    prefix = tmp_path / "here"
    code, said = await install(script, tmp_path, "--dry-run", "--prefix", str(prefix))
    assert code == 0 and not prefix.exists() and "+ curl" in said
    code, said = await install(script, tmp_path, "--prefix", str(prefix), "--version", BUILD_VERSION)
    assert code == 0, said
    done = await trio.run_process([str(prefix / "bin/coder")], capture_stdout=True)
    assert done.stdout == b"installed\n" and "not in PATH" in said
    assert [path.name for path in (prefix / "bin").iterdir()] == ["coder"]
    for args, why in (
        (["--version", "1.0.0"], f"this server has {BUILD_VERSION}, not 1.0.0"),
        (["--method", "rpm"], "--method is"), (["--nonsense"], "unknown option"), (["--prefix"], "needs a value"),
    ):  # fmt: skip
        code, said = await install(script, tmp_path, *args)
        assert code == 1 and why in said, (args, said)


@needs_curl
async def test_damage_on_the_way_is_found_and_half_a_script_does_nothing(server: Any, tmp_path: Path) -> None:
    script = (await server.get("/install.sh", token="")).text
    tools = tmp_path / "tools"
    tools.mkdir()
    curl = shutil.which("curl")
    # A proxy that cuts: curl is satisfied, the file is not whole.
    (tools / "curl").write_text(
        f'#!/bin/sh\n"{curl}" "$@" || exit\ncase "$*" in *sha256*) ;; *) printf x >>"$3" ;; esac\n'
    )
    (tools / "curl").chmod(0o755)
    prefix = tmp_path / "here"
    code, said = await install(script, tmp_path, "--prefix", str(prefix), path=f"{tools}:{os.environ['PATH']}")
    assert code == 1 and "is damaged" in said and not (prefix / "bin/coder").exists(), said
    for cut in range(0, len(script), len(script) // 17):
        await install(script[:cut], tmp_path, "--prefix", str(prefix))
        assert not prefix.exists(), cut


async def test_powershell_names_this_server(server: Any) -> None:
    script = (await server.get("/install.ps1", token="")).text
    assert "@URL@" not in script and BUILD_VERSION in script and server.ctx.access_url.rstrip("/") in script


@needs_dpkg
def test_the_package(tmp_path: Path) -> None:
    program = tmp_path / "coder"
    program.write_bytes(PROGRAM)
    for name in ("one.deb", "two.deb"):
        deb.build(program, "amd64", tmp_path / name)
    assert (tmp_path / "one.deb").read_bytes() == (tmp_path / "two.deb").read_bytes()
    shown = subprocess.run(["dpkg-deb", "--info", tmp_path / "one.deb"], capture_output=True, text=True, check=True)
    assert f"Version: {deb.version()}" in shown.stdout and f"v{deb.version()}" == BUILD_VERSION
    if os.geteuid() != 0:
        pytest.skip("installing needs root")
    root = tmp_path / "root"
    (root / "var/lib/dpkg").mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    # Its scripts need useradd: a root of two files has none, so they are looked at below instead.
    command = ["dpkg", f"--root={root}", "--force-depends", "--force-script-chrootless", "--unpack"]
    subprocess.run([*command, tmp_path / "one.deb"], check=True, capture_output=True)
    assert (root / "usr/bin/coder").stat().st_mode & 0o777 == 0o755
    assert (root / "etc/coder.d/coder.env.dpkg-new").stat().st_mode & 0o007 == 0
    if shutil.which("systemd-analyze"):
        units = [str(path) for path in (root / "lib/systemd/system").iterdir() if "@" not in path.name]
        checked = subprocess.run(
            ["systemd-analyze", "verify", f"--root={root}", "--man=no", *units],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        ours = [line for line in checked.stderr.splitlines() if "coder" in line and "Unknown" in line]
        assert not ours, checked.stderr


def test_scripts_of_the_package_are_shell() -> None:
    for name in ("postinst", "prerm", "postrm"):
        subprocess.run(["sh", "-n", ROOT / "build/debian" / name], check=True)
