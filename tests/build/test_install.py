"""/install.sh run for real against a server: by itself, and with a dpkg that writes down what it is told."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from coder.base.version import BUILD_VERSION
from tests.kit.server.server_in_process import running_coderd

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "build"))
import packing

PROGRAM = b"#!/bin/sh\necho installed\n"
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is needed")


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
        ["sh", "-s", "--", *args],
        stdin=script.encode(),
        env=env,
        check=False,
        capture_stdout=True,
        stderr=subprocess.STDOUT,
    )
    return done.returncode, done.stdout.decode()


@needs_curl
async def test_standalone(server: Any, tmp_path: Path) -> None:
    script = (await server.get("/install.sh", token="")).text
    prefix = tmp_path / "here"
    code, said = await install(script, tmp_path, "--dry-run", "--prefix", str(prefix))
    assert code == 0 and not prefix.exists() and "+ curl" in said and "/dev/null" not in said
    assert f"Would have installed {prefix}/bin/coder" in said
    code, said = await install(script, tmp_path, "--prefix", str(prefix), "--version", BUILD_VERSION)
    assert code == 0, said
    done = await trio.run_process([str(prefix / "bin/coder")], capture_stdout=True)
    assert done.stdout == b"installed\n" and "not in PATH" in said
    assert [path.name for path in (prefix / "bin").iterdir()] == ["coder"]
    for args, why in (
        (["--version", "1.0.0"], f"this server has {BUILD_VERSION}, not 1.0.0"),
        (["--method", "rpm"], "--method is"),
        (["--nonsense"], "unknown option"),
        (["--prefix"], "needs a value"),
    ):
        code, said = await install(script, tmp_path, *args)
        assert code == 1 and why in said, (args, said)


@needs_curl
async def test_full_program_by_default(server: Any, tmp_path: Path) -> None:
    """The documents run `provisionerd start` after install.sh, which the slim program cannot."""
    script = (await server.get("/install.sh", token="")).text
    architecture = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "armv7"}[platform.machine()]
    file = tmp_path / f"bin/coder-linux-{architecture}"
    launcher = b"#!/bin/sh\necho installed\nexit\n"
    for words, content, expected in (
        ((), packing.full_program(launcher, b"slim", b"rest"), f"/bin/coder-full-linux-{architecture}\n"),
        (("--slim",), packing.full_program(launcher, b"slim", b"rest"), f"/bin/coder-linux-{architecture}\n"),
        ((), packing.slim_program(launcher, b"slim"), "no full program for linux/"),
    ):
        file.write_bytes(content)
        code, said = await install(script, tmp_path, "--prefix", str(tmp_path / "here"), *words)
        assert code == 0 and expected in said, said
        assert (tmp_path / "here/bin/coder").stat().st_size == len(
            packing.slim_program(launcher, b"slim") if words else content
        )
    code, said = await install(script, tmp_path, "--prefix", str(tmp_path / "here"), "--full")
    assert code == 1 and f"the server has no coder-full-linux-{architecture}" in said


@needs_curl
async def test_damaged_downloads_install_nothing(server: Any, tmp_path: Path) -> None:
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


@needs_curl
async def test_machines_there_is_nothing_for(server: Any, tmp_path: Path) -> None:
    script = (await server.get("/install.sh", token="")).text
    tools = tmp_path / "tools"
    tools.mkdir()
    for system, machine, why in (
        ("Linux", "riscv64", "there is no program for riscv64; with Python 3.11 and a compiler: pipx install"),
        ("Linux", "armv6l", "there is no program for armv6l"),
        ("FreeBSD", "amd64", "FreeBSD is not supported"),
        ("Darwin", "arm64", "the server has no coder-darwin-arm64 (or did not answer)"),
    ):
        (tools / "uname").write_text(f'#!/bin/sh\n[ "$1" = -m ] && echo {machine} || echo {system}\n')
        (tools / "uname").chmod(0o755)
        prefix = tmp_path / "here"
        code, said = await install(script, tmp_path, "--prefix", str(prefix), path=f"{tools}:{os.environ['PATH']}")
        assert code == 1 and f"install.sh: {why}" in said and not prefix.exists(), said
    told = re.search(r"; \S+?//[^/]+(/bin/\S+) says", said)  # type: ignore[possibly-undefined]
    assert told is not None
    answer = await server.get(told[1], token="")
    assert answer.status_code == 404 and "pipx install FILE.whl" in answer.json()["detail"]


async def test_powershell_names_this_server(server: Any) -> None:
    script = (await server.get("/install.ps1", token="")).text
    assert "@URL@" not in script and BUILD_VERSION in script and server.ctx.access_url.rstrip("/") in script


@needs_curl
async def test_detection_and_the_package(server: Any, tmp_path: Path) -> None:
    """A dry run says what the real one does: the package where dpkg is, we are root and the server has one."""
    script = (await server.get("/install.sh", token="")).text
    tools, told, shelf = tmp_path / "tools", tmp_path / "told", tmp_path / "bin"
    tools.mkdir()
    for name, body in {
        "dpkg": f'echo "$1" >>{told}; cat "$2" >>{told}',
        "id": "echo 0",
        "sudo": f'echo sudo >>{told}; "$@"',
    }.items():
        (tools / name).write_text(f"#!/bin/sh\n{body}\n")
        (tools / name).chmod(0o755)
    path = f"{tools}:{os.environ['PATH']}"
    prefix = ("--prefix", str(tmp_path / "here"))
    # Without a package on the server: standalone.
    code, said = await install(script, tmp_path, "--dry-run", path=path)
    assert code == 0 and ".deb" not in said and "dpkg" not in said, said
    code, said = await install(script, tmp_path, "--method", "deb", path=path)
    assert code == 1 and "the server has no coder-linux-" in said and not told.exists(), said
    for name in ("amd64", "arm64", "armv7"):
        (shelf / f"coder-linux-{name}.deb").write_bytes(b"the package\n")
    for words in ((), ("--method", "deb")):
        code, said = await install(script, tmp_path, "--dry-run", *words, path=path)
        assert code == 0 and "+ dpkg -i " in said and ".deb" in said and "/dev/null" not in said, said
        assert "Would have installed the package coder-py" in said and not told.exists()
        code, said = await install(script, tmp_path, *words, path=path)
        assert code == 0 and said.count("Installed the package coder-py.") == 1, said
        assert told.read_text() == "-i\nthe package\n"
        told.unlink()
    # A person's own prefix, or somebody who is not root, gets the file; who asks for the package, sudo.
    for words, user in ((prefix, "0"), ((), "1000")):
        (tools / "id").write_text(f"#!/bin/sh\necho {user}\n")
        code, said = await install(script, tmp_path, "--dry-run", *words, path=path)
        assert code == 0 and ".deb" not in said, said
    code, said = await install(script, tmp_path, "--method", "deb", path=path)
    assert code == 0 and told.read_text() == "sudo\n-i\nthe package\n", said
