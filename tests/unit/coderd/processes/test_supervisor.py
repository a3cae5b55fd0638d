"""`coder server --processes`: a real server of several processes on the suite's PostgreSQL."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import trio

from coder.mesh.relay import DerpTransport, exchange
from coder.net.carried_stream import connect_carried
from coder.net.policy import DialPolicy
from tests.kit.api.http_clients import http_client
from tests.kit.free_ports import free_port
from tests.kit.server.postgres_server import fresh_database
from tests.kit.stand_ins.certificates import Authority

PASSWORD = "SomeSecurePassword!"
NAMES = ["api-1", "api-2", "edge", "loops", "relay"]


@dataclass
class RunningProcesses:
    """A server of two processes that accept, and the others."""

    process: trio.Process
    client: httpx.AsyncClient
    log: Path
    token: str = ""

    async def get(self, path: str) -> Any:
        answer = await self.client.get(path, headers={"Coder-Session-Token": self.token})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def pids(self) -> dict[str, int]:
        """Return the pids of the server's processes by name."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        names: dict[str, int] = {}
        for pid in children:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # ended before the search, or during it
                names[Path(f"/proc/{pid}/comm").read_text().strip().removeprefix("coder ")] = int(pid)
        return {name: pid for name, pid in names.items() if name in NAMES}

    async def ready(self) -> int:
        """Return how many processes are ready."""
        return int(float(await self.metric("coder_server_processes")))

    async def metric(self, start: str) -> str:
        """Return the value of the first series that begins so; empty without one."""
        answer = await self.client.get("/api/v2/debug/metrics", headers={"Coder-Session-Token": self.token})
        return next((line.rpartition(" ")[2] for line in answer.text.splitlines() if line.startswith(start)), "")

    async def sign_up(self) -> None:
        first = {"email": "ana@example.com", "username": "ana", "password": PASSWORD}
        assert (await self.client.post("/api/v2/users/first", json=first)).status_code == 201
        answer = await self.client.post("/api/v2/users/login", json={"email": first["email"], "password": PASSWORD})
        self.token = answer.json()["session_token"]


async def until(condition: Callable[[], Any], server: RunningProcesses) -> None:
    with trio.move_on_after(90):
        while True:
            with contextlib.suppress(httpx.TransportError):
                if await condition():
                    return
            await trio.sleep(0.1)
    raise AssertionError(server.log.read_text()[-4000:])


@contextlib.asynccontextmanager
async def running(folder: Path, *options: str) -> AsyncIterator[RunningProcesses]:
    address = f"127.0.0.1:{free_port()}"
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "PYTHONPATH": os.pathsep.join(sys.path),
        "CODER_CONFIG_DIR": str(folder / "config"),
        "CODER_CACHE_DIRECTORY": str(folder / "cache"),
        "CODER_STUN_ADDRESS": "",
        "CODER_PROCESSES": "2",
    }
    async with fresh_database(template="") as url, http_client(f"http://{address}") as client:
        words = ["server", "--http-address", address, "--access-url", f"http://{address}", "--postgres-url", url]
        log = folder / "server.log"
        with log.open("ab") as output:
            process = await trio.lowlevel.open_process(
                [sys.executable, "-m", "coder", *words, "--provisioner-daemons", "0", *options],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        server = RunningProcesses(process, client, log)

        async def answers() -> bool:
            return "View the Web UI" in log.read_text()

        try:
            await until(answers, server)
            await server.sign_up()
            yield server
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            with trio.fail_after(90):
                await process.wait()
            assert process.returncode == 0, log.read_text()
        finally:
            with trio.CancelScope(shield=True):
                process.kill()
                await process.wait()


async def test_processes_are_one_server(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        assert sorted(server.pids()) == NAMES
        assert await server.ready() == 5
        assert len(await server.get("/api/v2/replicas")) == 1
        assert await server.metric("go_sql_max_open_connections") == "10.0"
        names = server.pids()
    assert not any(Path(f"/proc/{pid}").exists() for pid in names.values())
    assert not list(tmp_path.glob("coder-processes-*"))


async def test_lost_process_is_replaced_and_named(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        before = server.pids()
        for name in ("api-1", "relay"):
            os.kill(before[name], signal.SIGKILL)

        async def replaced() -> bool:
            after = server.pids()
            return sorted(after) == NAMES and after["api-1"] != before["api-1"] and await server.ready() == 5

        await until(replaced, server)
        assert server.pids()["api-2"] == before["api-2"]
        series = 'coder_server_process_restarts_total{cause="signal",process="relay"}'
        assert await server.metric(series) == "1.0"
        report = (await server.get("/api/v2/debug/health?force=true"))["access_url"]
        assert report["severity"] == "warning"
        assert any("api-1" in warning["message"] for warning in report["warnings"])
        assert "a process was lost and is replaced" in server.log.read_text()


async def test_carried_streams_reach_their_process(tmp_path: Path) -> None:
    """Every request of a stream comes on a new connection, which any process may accept."""
    certificate, key = Authority(tmp_path).issue("localhost")
    secure = f"127.0.0.1:{free_port()}"
    options = ("--tls-enable", "--tls-address", secure, "--tls-cert-file", certificate, "--tls-key-file", key)
    async with running(tmp_path, *options) as server:
        for url in (str(server.client.base_url), f"https://{secure}"):
            policy = DialPolicy(url, insecure=True)
            with trio.fail_after(60):
                for _ in range(4):
                    ends = [(await connect_carried(policy, "/derp", "DERP"))[0] for _ in range(2)]
                    assert await exchange(DerpTransport(ends[0]), DerpTransport(ends[1])) > 0


async def test_hangup_replaces_processes_in_place(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        before = server.pids()
        server.process.send_signal(signal.SIGHUP)

        async def replaced() -> bool:
            assert (await server.client.get("/healthz")).status_code == 200  # at every moment
            assert sorted(server.pids()) == NAMES, "a successor starts before its predecessor stops"
            return "all processes were replaced" in server.log.read_text() and await server.ready() == 5

        await until(replaced, server)
        after = server.pids()
        assert sorted(after) == NAMES
        assert not set(before.values()) & set(after.values())
        assert (await server.get("/api/v2/users/me"))["username"] == "ana"


async def test_failing_program_changes_nothing(tmp_path: Path) -> None:
    """A file that is no settings, and settings whose address another program uses."""
    settings = tmp_path / "settings.yaml"
    settings.write_text("{}\n")
    certificate, key = Authority(tmp_path).issue("localhost")
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        tls = f"{{enable: true, address: '{taken}', certFiles: ['{certificate}'], keyFiles: ['{key}']}}"
        async with running(tmp_path, "--config", str(settings)) as server:
            before = server.pids()
            for text, reason in (
                ("networking: [\n", "the text is not YAML"),
                (f"networking: {{tls: {tls}}}\n", "cannot listen"),
            ):
                known = len(server.log.read_text())
                settings.write_text(text)
                server.process.send_signal(signal.SIGHUP)

                async def refused(known: int = known) -> bool:
                    log = server.log.read_text()[known:]
                    return "the program on disk does not start; nothing is changed" in log

                await until(refused, server)
                assert reason in server.log.read_text()[known:]
                assert server.pids() == before
                assert (await server.get("/api/v2/users/me"))["username"] == "ana"
