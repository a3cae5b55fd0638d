"""Our tunnel against wireguard-go in a network namespace: both roles, a pre-shared key, real packets, TCP and UDP both
ways, keys renewed under traffic, and either side roaming.

Needs root, /dev/net/tun, `unshare` and wireguard-go (on PATH or named by WIREGUARD_GO); skipped without them. The
package of the newest Debian release is a second peer where the benchmark (scripts/bench mesh) has fetched it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = os.environ.get("WIREGUARD_GO") or shutil.which("wireguard-go")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
NEWEST = CACHE / "coder/wireguard-go-sid/usr/bin/wireguard-go"
ROOT = Path(__file__).resolve().parents[2]
WORDS = ["initiator", "responder", "answered", "tcp", "udp", "renewed", "roamed"]

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(os.geteuid() != 0 or not Path("/dev/net/tun").exists(), reason="needs root and /dev/net/tun"),
]
debian = pytest.param(
    PROGRAM or "", id="debian", marks=pytest.mark.skipif(PROGRAM is None, reason="wireguard-go is not installed")
)
newest = pytest.param(
    str(NEWEST),
    id="newest",
    marks=pytest.mark.skipif(not NEWEST.exists(), reason="scripts/bench mesh has not fetched it"),
)


def converse(program: str, *options: str, timeout: float = 120) -> list[str]:
    done = subprocess.run(
        ["unshare", "--net", "--mount", sys.executable, "-m", "tests.interop.wireguard_go_peer", program, *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout.split()


@pytest.mark.parametrize("program", [debian])
def test_both_roles_with_wireguard_go(program: str) -> None:
    assert converse(program) == WORDS


@pytest.mark.soak
@pytest.mark.parametrize("program", [newest])
def test_both_roles_with_newest_release(program: str) -> None:
    assert converse(program) == WORDS


@pytest.mark.soak
@pytest.mark.parametrize("program", [debian, newest])
def test_ten_minutes_with_wireguard_go(program: str) -> None:
    assert converse(program, "long", timeout=700) == [*WORDS[:5], "long", "long", *WORDS[5:]]
