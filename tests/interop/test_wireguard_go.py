"""Our tunnel against wireguard-go in a network namespace: both roles, a pre-shared key, real packets.

Needs root, /dev/net/tun, `unshare` and wireguard-go (on PATH or named by WIREGUARD_GO); skipped without them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = os.environ.get("WIREGUARD_GO") or shutil.which("wireguard-go")
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.system
@pytest.mark.skipif(PROGRAM is None, reason="wireguard-go is not installed")
@pytest.mark.skipif(os.geteuid() != 0 or not Path("/dev/net/tun").exists(), reason="needs root and /dev/net/tun")
def test_both_roles_with_wireguard_go() -> None:
    assert PROGRAM is not None
    done = subprocess.run(
        ["unshare", "--net", "--mount", sys.executable, "-m", "tests.interop.wireguard_go_peer", PROGRAM],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout.split(), done.returncode) == (["initiator", "responder", "answered"], 0), done.stderr
