"""The peer of `mesh`: wireguard-go with iperf3 between two network namespaces.

Lives here: finding the programs, the tunnel, one measured run. Our own nodes run over the same cable (mesh_stream.py).
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from coder.mesh.core.crypto.keys import PrivateKey
from tests.kit.network.network_namespaces import Net, open_net

OUTER = ("10.211.0.1", "10.211.0.2")
INNER = ("fd00:b::1", "fd00:b::2")
PORT = 51820
SIDES = ("east", "west")
SUITE = "sid"
"""The release of Debian the newest package is taken from."""
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Transfer:
    """One run of iperf3 through the tunnel."""

    mbit_per_second: float
    bytes: int
    cpu_seconds: float
    """Both wireguard-go processes and both iperf3 (whose share holds the kernel's TCP)."""


class UnavailableError(Exception):
    """Why the peer cannot be measured here."""


def newest() -> Path:
    """wireguard-go of the newest Debian release, unpacked beside our cache: nothing of it is installed."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "coder" / f"wireguard-go-{SUITE}"
    program = folder / "usr/bin/wireguard-go"
    if program.exists():
        return program
    if not (_KEYRING.exists() and shutil.which("apt-get") and shutil.which("dpkg")):
        raise UnavailableError("no apt to fetch a newer wireguard-go with")
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        (work / "lists/partial").mkdir(parents=True)
        (work / "cache/archives/partial").mkdir(parents=True)
        (work / "sources").write_text(f"deb [signed-by={_KEYRING}] http://deb.debian.org/debian {SUITE} main\n")
        options = [
            "-o",
            f"Dir::Etc::sourcelist={work / 'sources'}",
            "-o",
            "Dir::Etc::sourceparts=/dev/null",
            "-o",
            f"Dir::State::lists={work / 'lists'}",
            "-o",
            f"Dir::Cache={work / 'cache'}",
        ]
        for command in (["update"], ["download", "wireguard-go"]):
            done = subprocess.run(["apt-get", "-q", *options, *command], cwd=work, capture_output=True, check=False)
            if done.returncode:
                raise UnavailableError(f"apt-get {command[0]} from {SUITE} failed")
        (package,) = work.glob("wireguard-go_*.deb")
        subprocess.run(["dpkg", "-x", str(package), str(folder)], check=True)
    return program


def installed() -> Path:
    """wireguard-go of the running Debian release."""
    found = shutil.which("wireguard-go")
    if found is None:
        raise UnavailableError("wireguard-go is not installed (apt-get install wireguard-go)")
    return Path(found)


def version(program: Path) -> str:
    return subprocess.run([str(program), "--version"], capture_output=True, text=True, check=True).stdout.split()[1]


@contextmanager
def cable() -> Iterator[Net]:
    """Two namespaces, SIDES, with one cable between them."""
    with open_net() as net:
        for side in SIDES:
            net.add(side)
        net.cable(SIDES[0], f"{OUTER[0]}/24", SIDES[1], f"{OUTER[1]}/24")
        yield net


@contextmanager
def tunnel(net: Net, program: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """A tunnel over the cable; the processes at its ends."""
    keys = [PrivateKey.generate(os.urandom) for _ in range(2)]
    with ExitStack() as stack:
        ends = []
        for index, side in enumerate(SIDES):
            device = f"wgb{os.getpid() % 10000}{side}"
            end = subprocess.Popen(
                net.command(side, str(program), "-f", device), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            stack.callback(_stop, end)
            ends.append(end)
            _configure(device, keys[index], keys[1 - index], OUTER[1 - index], INNER[1 - index])
            net.run(side, "ip", "address", "add", f"{INNER[index]}/64", "dev", device, "nodad")
            net.run(side, "ip", "link", "set", "dev", device, "up")
        yield ends


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait()


def _configure(device: str, own: PrivateKey, other: PrivateKey, outer: str, inner: str) -> None:
    text = (
        f"set=1\nprivate_key={own.reveal().hex()}\nlisten_port={PORT}\npublic_key={other.public.hex()}\n"
        f"endpoint={outer}:{PORT}\nallowed_ip={inner}/128\n\n"
    )
    path = Path("/var/run/wireguard") / f"{device}.sock"
    deadline = time.monotonic() + 10
    while True:
        try:
            with socket.socket(socket.AF_UNIX) as control:
                control.connect(str(path))
                control.sendall(text.encode())
                if b"errno=0" not in control.recv(4096):
                    raise UnavailableError("wireguard-go refused its configuration")
                return
        except OSError as error:
            if time.monotonic() > deadline:
                raise UnavailableError("wireguard-go did not start (is /dev/net/tun usable?)") from error
            time.sleep(0.02)


def transfer(net: Net, ends: list[subprocess.Popen[bytes]], seconds: float) -> Transfer:
    """One TCP stream east -> west for so long."""
    if shutil.which("iperf3") is None:
        raise UnavailableError("iperf3 is not installed (apt-get install iperf3)")
    whole = max(1, round(seconds))
    # The server needs a moment to listen, and the first packet a handshake: try until it works.
    for _ in range(20):
        before = sum(_cpu(end.pid) for end in ends)
        server = subprocess.Popen(net.command(SIDES[1], "iperf3", "-s", "-1"), stdout=subprocess.DEVNULL)
        time.sleep(0.1)
        client = subprocess.Popen(
            net.command(SIDES[0], "timeout", str(whole + 5), "iperf3", "-6", "-c", INNER[1], "-t", str(whole), "-J"),
            stdout=subprocess.PIPE,
        )
        assert client.stdout is not None
        output = client.stdout.read()
        spent = _reap(client)
        if client.returncode:
            server.kill()
        spent += _reap(server)
        if not client.returncode:
            received = json.loads(output)["end"]["sum_received"]
            spent += sum(_cpu(end.pid) for end in ends) - before
            return Transfer(received["bits_per_second"] / 1e6, received["bytes"], spent)
    raise UnavailableError("iperf3 found no way through the tunnel")


def _reap(process: subprocess.Popen[bytes]) -> float:
    """CPU seconds of a process that is about to end; one that is not is killed after five seconds."""
    deadline = time.monotonic() + 5
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage.ru_utime + usage.ru_stime
        if time.monotonic() > deadline:
            process.kill()
        time.sleep(0.01)


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
