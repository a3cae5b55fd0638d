"""Our TCP against the Linux kernel's, through a TUN device in a network namespace."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HELPER = Path(__file__).with_name("kernel_peer.py")


def why_not() -> str:
    """The reason this machine cannot run these tests, or nothing."""
    if not shutil.which("unshare") or not shutil.which("ip"):
        return "needs unshare and ip"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "needs access to /dev/net/tun"
    if subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode:
        return "needs the right to make network namespaces"
    return ""


pytestmark = [pytest.mark.system, pytest.mark.skipif(bool(why_not()), reason=why_not() or "runs")]


def run(scenario: str) -> dict[str, object]:
    command = ["unshare", "--net", sys.executable, str(HELPER), *scenario.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    "scenario",
    ["upload", "download", "both", "both-active", "harmed", "harmed-passive", "jumbo", "both ipv4", "harmed ipv4"],
)
def test_transfer(scenario: str) -> None:
    result = run(scenario)
    assert result["up_ok"], result
    assert result["down_ok"], result
    assert result["over"], result
    assert result["error"] == "None", result


@pytest.mark.parametrize("scenario", ["refused", "datagrams", "refused ipv4", "datagrams ipv4"])
def test_answers(scenario: str) -> None:
    result = run(scenario)
    assert result, result
    assert all(result.values()), result


def test_rare_moments() -> None:
    """Crossing SYNs and FINs, closed windows, silence, RFC 5961 challenges, ECN marks: all in one namespace."""
    command = ["unshare", "--net", sys.executable, "-m", "tests.interop.kernel_corners"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=HELPER.parents[2])
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout).items()) == {
        (moment, True)
        for moment in (
            "simultaneous open",
            "simultaneous close",
            "their zero window",
            "our zero window",
            "their keepalives",
            "our keepalives",
            "our challenge",
            "their challenge",
            "marked packets",
        )
    }
