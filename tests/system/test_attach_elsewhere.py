"""Machines unlike the one the program was built on: an older C library, none of that kind, another processor.

Only a built program can be taken there (`./scripts/test --binary`). The program for a foreign processor lies beside it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.kit.agents.attached_machine import ENTER, NOBODY, attaching, connected
from tests.kit.agents.machine_roots import ROOTS, path_with, root_of
from tests.kit.agents.scripted_agent import workspace_world
from tests.kit.free_ports import free_port
from tests.kit.network.middleboxes import AuthProxy, serve_box
from tests.kit.stand_ins.certificates import Authority

BUILT = os.environ.get("CODER_TEST_BINARY", "")
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not BUILT, reason="a built program is taken there"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root enters another root"),
]
SHELLS = {"busybox": ("busybox", "sh")}


@pytest.fixture
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Path, Path]]:
    """A root's name, its folder, and a folder in it that is new; the server has a program for it."""
    name = request.param
    program = Path(BUILT).with_name(f"coder-linux-{ROOTS[name].arch}")
    if ROOTS[name].arch == "amd64":
        program = Path(BUILT)
    elif not program.exists():
        pytest.skip(f"{program.name} was not built (build/build.py --platform)")
    root = root_of(name)
    (tmp_path / "site/bin").mkdir(parents=True)
    shutil.copyfile(program, tmp_path / f"site/bin/coder-linux-{ROOTS[name].arch}")
    place = root / "place"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    yield name, root, place
    shutil.rmtree(place)


CASES = [(name, tool, user) for name, root in ROOTS.items() for tool in root.have for user in (None, NOBODY)]


@pytest.mark.parametrize(
    ("where", "tool", "user"), CASES, indirect=["where"], ids=[f"{n}-{t}-{u or 'root'}" for n, t, u in CASES]
)
async def test_with_only(where: tuple[str, Path, Path], tool: str, user: int | None, tmp_path: Path) -> None:
    name, root, place = where
    shell = SHELLS.get(tool, ("sh",))
    settings: dict[str, Any] = {"shell": shell, "user": user, "arch": ROOTS[name].arch, "root": root}
    async with (
        workspace_world(site_dir=str(tmp_path / "site")) as view,
        attaching(view, place, path_with(root, tool), **settings) as run,
    ):
        await connected(view, run, seconds=300 if ROOTS[name].arch != "amd64" else 60)


WITH_TLS = [(name, tool) for name, root in ROOTS.items() for tool in ("curl", "wget") if "curl" in root.have]


@pytest.mark.parametrize(("where", "tool"), WITH_TLS, indirect=["where"], ids=["-".join(case) for case in WITH_TLS])
@pytest.mark.parametrize("proxied", [False, True], ids=["direct", "proxy"])
async def test_private_certificate_authority(
    where: tuple[str, Path, Path], tool: str, proxied: bool, tmp_path: Path
) -> None:
    """Directly, and behind a proxy that wants a password and alone knows where the server is."""
    name, root, place = where
    host = "coder.internal" if proxied else "localhost"
    authority = Authority(tmp_path)
    shutil.copyfile(authority.file, place / "ca.pem")
    certificate, key = authority.issue(host)
    port = free_port()
    settings: dict[str, Any] = {
        "site_dir": str(tmp_path / "site"),
        "tls_enable": True,
        "tls_address": f"127.0.0.1:{port}",
        "tls_cert_file": (certificate,),
        "tls_key_file": (key,),
        "access_url": f"https://{host}:{port}",
    }
    (place / "wgetrc").write_text("ca_certificate = /place/ca.pem\n")
    env: dict[str, Any] = {"SSL_CERT_FILE": "/place/ca.pem", "WGETRC": "/place/wgetrc"}
    proxy = AuthProxy(("127.0.0.1", port), "ana", "secret")
    async with workspace_world(**settings) as view, trio.open_nursery() as nursery:
        box = await nursery.start(serve_box, proxy)
        if proxied:
            env["https_proxy"] = env["HTTPS_PROXY"] = f"http://ana:secret@127.0.0.1:{box}"
        run = attaching(view, place, path_with(root, tool), arch=ROOTS[name].arch, root=root, env=env)
        async with run as attached:
            await connected(view, attached, seconds=300 if ROOTS[name].arch != "amd64" else 60)
        assert set(proxy.tunnels) == ({f"{host}:{port}"} if proxied else set()) and proxy.refused == 0
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("where", ROOTS, indirect=True)
def test_which_library_runs_it(where: tuple[str, Path, Path], tmp_path: Path) -> None:
    """The machine's own C library where it is new enough, the program's own elsewhere: it runs either way."""
    name, root, place = where
    shutil.copyfile(tmp_path / f"site/bin/coder-linux-{ROOTS[name].arch}", place / "coder")
    (place / "coder").chmod(0o755)
    said = {}
    for forced in ("", "1"):
        env = {"HOME": "/place", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "CODER_BUNDLED_LIBC": forced}
        command = ["unshare", "--mount", "sh", "-c", ENTER, str(root), "0:0", "/place/coder", "version"]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done
        said[forced] = done.stdout
    assert said[""] == said["1"] and "Coder" in said[""]
