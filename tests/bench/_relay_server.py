"""The relay of `mesh`: `coder server` itself, in plain HTTP or behind its TLS, as it runs beside everything else.

Lives here: starting one, and what it has spent. The nodes that talk through it are mesh_stream.py's.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import trio

from coder.api.people.passwords import LoginWithPasswordResponse
from coder.base.secret import Secret
from coder.client.answers import read
from coder.net.errors import NetError
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy
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
    token: str
    """Session token of its first user, whose nodes are no strangers to the relay."""

    @property
    def words(self) -> list[str]:
        """For the command line of a node."""
        return ["--server", f"{self.host}:{self.port}", "--authority", self.authority, "--token", self.token]

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
        module = "tests.bench._relay_server"
        token = _wait(process, log, [*command, sys.executable, "-m", module, host, str(port), authority])
        yield RelayServer(host, port, authority, process.pid, token)
    finally:
        end(process)
        shutil.rmtree(folder, ignore_errors=True)


def _wait(process: subprocess.Popen[bytes], log: Path, first_user: list[str]) -> str:
    """Return the token of the first user. `ip netns exec` becomes the program, so this may be elsewhere."""
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        done = subprocess.run(first_user, cwd=ROOT, check=False, capture_output=True, text=True)
        if not done.returncode:
            return done.stdout.strip()
    raise RuntimeError(f"the relay's server does not answer: {log.read_text(errors='replace')[-2000:]}")


def policy(host: str, port: int, authority: str, token: str = "") -> DialPolicy:
    """Return how the server is reached."""
    secret = Secret(token) if token else None
    if not authority:
        return DialPolicy(f"http://{host}:{port}", secret, proxies={})
    return DialPolicy(f"https://{NAME}:{port}", secret, ca_file=authority, address=host, proxies={})


async def _first_user(reached: DialPolicy) -> str:
    """Create the first user and return its session token. Raises NetError, HttpError."""
    login = {"email": "bench@example.com", "password": "A-bench-password-7"}
    async with HttpClient(reached) as client:
        await client.request("POST", "/api/v2/users/first", json={**login, "username": "bench"})
        return read(
            await client.request("POST", "/api/v2/users/login", json=login), LoginWithPasswordResponse
        ).session_token


if __name__ == "__main__":
    try:
        print(trio.run(_first_user, policy(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
    except NetError:
        time.sleep(0.2)
        sys.exit(1)
