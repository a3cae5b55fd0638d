"""iperf3 between two kernels, with our WireGuard on one side and wireguard-go on the other: TCP and UDP both ways.

Needs what test_wireguard_go.py needs, and iperf3; skipped without them.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from coder.mesh.core.crypto.keys import PrivateKey
from tests.interop.test_wireguard_go import NEWEST, PROGRAM, ROOT
from tests.kit.network import network_namespaces

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        not network_namespaces.available() or not Path("/dev/net/tun").exists(), reason="needs root and tun"
    ),
    pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed"),
]
PATHS = {"debian": PROGRAM or "", "newest": str(NEWEST)}
OURS, THEIRS = ("fd00:9::1/64", "10.97.0.1/24"), ("fd00:9::2/64", "10.97.0.2/24")
PORTS = 51998, 51999


@contextmanager
def running(command: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(command, text=True, cwd=ROOT, **options) as process:
        try:
            yield process
        finally:
            process.terminate()


def until(there: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not there():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def configure(name: str, text: str) -> None:
    with socket.socket(socket.AF_UNIX) as control:
        until(lambda: control.connect_ex(f"/var/run/wireguard/{name}.sock") == 0, "no device listens")
        control.sendall(f"set=1\n{text}\n".encode())
        assert b"errno=0" in control.recv(4096)


class Pair:
    """The two namespaces: `go` runs wireguard-go and servers of iperf3, `py` ours and its clients."""

    def __init__(self, net: network_namespaces.Net, ours: subprocess.Popen[str], device: str) -> None:
        self.net, self.ours, self.device = net, ours, device

    def iperf(self, *options: str) -> dict[str, Any]:
        """Both directions at once; -> the report."""
        with self.serving():
            done = subprocess.run(
                self.net.command("py", "iperf3", "-c", *options, "--bidir", "--json"),
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
        report: dict[str, Any] = json.loads(done.stdout)
        assert "error" not in report, report["error"]
        return report

    @contextmanager
    def serving(self) -> Iterator[None]:
        """A server for one client: one that goes on listens anew after each, and resets the next that is quicker."""
        with running(self.net.command("go", "iperf3", "-s", "-1"), stdout=subprocess.DEVNULL) as server:
            until(lambda: "5201" in self.net.run("go", "ss", "-ltn") or server.poll() is not None, "no iperf3 server")
            yield

    def tell(self, word: str) -> None:
        assert self.ours.stdin is not None
        self.ours.stdin.write(word + "\n")
        self.ours.stdin.flush()

    def handshakes(self) -> int:
        """Of the whole run, which ends here."""
        assert self.ours.stdout is not None
        self.tell("end")
        return int(self.ours.stdout.readline())


@contextmanager
def tunnel(program: str, *, keys_live: float = 120.0) -> Iterator[Pair]:
    device = f"wg{os.getpid()}"
    with network_namespaces.open_net() as net:
        net.add("go")
        net.add("py")
        net.cable("go", "10.96.0.2/24", "py", "10.96.0.1/24")
        theirs = PrivateKey.generate(os.urandom)
        ours = net.command(
            "py",
            sys.executable,
            "-m",
            "tests.interop.wireguard_tun",
            str(PORTS[0]),
            "10.96.0.2",
            str(PORTS[1]),
            theirs.public.hex(),
            str(keys_live),
            *OURS,
        )
        with (
            running(net.command("go", program, "-f", device), stderr=subprocess.DEVNULL) as go,
            running(ours, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as py,
        ):
            until(lambda: Path(f"/var/run/wireguard/{device}.sock").exists() or go.poll() is not None, "no device")
            assert py.stdout is not None
            key = py.stdout.readline().strip()
            configure(
                device,
                f"private_key={theirs.reveal().hex()}\nlisten_port={PORTS[1]}\npublic_key={key}\n"
                f"endpoint=10.96.0.1:{PORTS[0]}\nallowed_ip=fd00:9::1/128\nallowed_ip=10.97.0.1/32\n",
            )
            for address in THEIRS:
                extra = ["nodad"] if ":" in address else []
                net.run("go", "ip", "address", "add", address, "dev", device, *extra)
            net.run("go", "ip", "link", "set", device, "up")
            yield Pair(net, py, device)


def received(report: dict[str, Any]) -> tuple[int, int]:
    end = report["end"]
    return end["sum_received"]["bytes"], end["sum_received_bidir_reverse"]["bytes"]


def check(pair: Pair) -> None:
    """Ping, TCP over IPv6, UDP over IPv4: each both ways at once."""
    ping = pair.net.command("py", "ping", "-q", "-c", "1", "-W", "1", "fd00:9::2")
    # Kernels drop what comes to an address they have only just been given.
    until(lambda: subprocess.run(ping, capture_output=True, check=False).returncode == 0, "no answer to pings")
    assert min(received(pair.iperf("fd00:9::2", "-t", "1"))) > 65_536  # more than one window: acknowledged both ways
    # All of it fits into the buffers on the way: whoever has to wait for the processor for a second loses nothing.
    report = pair.iperf("10.97.0.2", "-t", "1", "-u", "-b", "500K", "-l", "1200")
    lost = [stream["udp"]["lost_percent"] for stream in report["end"]["streams"]]
    assert len(lost) == 2
    assert max(lost) < 5, lost


@pytest.mark.skipif(PROGRAM is None, reason="wireguard-go is not installed")
def test_iperf_through_wireguard_go() -> None:
    with tunnel(PATHS["debian"]) as pair:
        check(pair)


@pytest.mark.soak
@pytest.mark.parametrize("which", PATHS)
def test_rekey_and_roaming_under_load(which: str) -> None:
    """Twelve seconds of TCP both ways while keys are renewed every five and each side moves to another port."""
    if not Path(PATHS[which]).is_file():
        pytest.skip("this wireguard-go is not here; scripts/bench mesh fetches the newest")
    with tunnel(PATHS[which], keys_live=1.0) as pair:
        check(pair)
        client = pair.net.command("py", "iperf3", "-c", "fd00:9::2", "--bidir", "-t", "12", "--json")
        with pair.serving(), running(client, stdout=subprocess.PIPE) as load:
            time.sleep(3)
            pair.tell("roam")
            time.sleep(3)
            configure(pair.device, "listen_port=52000\n")
            out, _ = load.communicate(timeout=120)
        report = json.loads(out)
        assert "error" not in report, report["error"]
        for sums in ("sum", "sum_bidir_reverse"):
            rates = [interval[sums]["bytes"] for interval in report["intervals"]]
            assert len(rates) >= 12
            assert sum(rate == 0 for rate in rates) <= 1, rates
        assert pair.handshakes() >= 3
