"""The relay of `mesh`: `coder server` itself, in plain HTTP or behind its TLS, as it runs beside everything else.

Lives here: starting one, and what it has spent. The nodes that talk through it are mesh_stream.py's.
"""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.first import end
from tests.kit.stand_ins.certificates import Authority

ROOT = Path(__file__).resolve().parents[2]
NAME = "relay.test"
"""Whom the certificate names; nodes are told its address."""
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class RelayServer:
    """One that answers."""

    host: str
    port: int
    authority: str
    """File of who signed its certificate; empty: it speaks plain HTTP."""
    pid: int

    @property
    def words(self) -> list[str]:
        """For the command line of a node."""
        return ["--server", f"{self.host}:{self.port}", "--authority", self.authority]

    def cpu(self) -> float:
        """Seconds of processor time since it started; its database's are not counted."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS


@contextmanager
def relay_server(
    *, tls: bool, host: str = "127.0.0.1", command: Sequence[str] = (), tree: Path = ROOT
) -> Iterator[RelayServer]:
    """A server of its own, with a database of its own. `command` is put before it (`ip netns exec …`).

    Raises RuntimeError with the end of its log when it does not answer within a minute.
    """
    folder = Path(tempfile.mkdtemp(prefix="coder-bench-relay-", dir="/tmp"))
    folder.chmod(0o755)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    authority = ""
    listen = ["--http-address", f"{host}:{port}", "--access-url", f"http://{host}:{port}"]
    if tls:
        signer = Authority(folder)
        authority = signer.file
        certificate, key = signer.issue(NAME)
        listen = [
            "--http-address",
            "",
            "--tls-enable",
            "--tls-address",
            f"{host}:{port}",
            "--tls-cert-file",
            certificate,
            "--tls-key-file",
            key,
            "--access-url",
            f"https://{host}:{port}",
        ]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CODER_")}
    log = folder / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [
                *command,
                sys.executable,
                "-m",
                "coder",
                "server",
                *listen,
                "--cache-dir",
                str(folder / "cache"),
                "--derp-server-stun-addresses",
                "disable",
                "--provisioner-daemons",
                "0",
            ],
            env={**kept, "CODER_CONFIG_DIR": str(folder / "config"), "PYTHONPATH": str(tree)},
            cwd=tree,
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        _wait(process, log, [*command, sys.executable, "-m", "tests.bench._relay_server", host, str(port), authority])
        yield RelayServer(host, port, authority, process.pid)
    finally:
        end(process)
        shutil.rmtree(folder, ignore_errors=True)


def _wait(process: subprocess.Popen[bytes], log: Path, probe: list[str]) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        if not subprocess.run(probe, cwd=ROOT, check=False, capture_output=True).returncode:
            return
    raise RuntimeError(f"the relay's server does not answer: {log.read_text(errors='replace')[-2000:]}")


def _probe(host: str, port: int, authority: str) -> None:
    """Raises OSError until it accepts connections. `ip netns exec` becomes the program, so this may be elsewhere."""
    with socket.create_connection((host, port), timeout=1) as plain:
        if authority:
            ssl.create_default_context(cafile=authority).wrap_socket(plain, server_hostname=NAME).close()


if __name__ == "__main__":
    try:
        _probe(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    except OSError:
        time.sleep(0.2)
        sys.exit(1)
