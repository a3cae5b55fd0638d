"""A server under attack: several processes, TLS, a PostgreSQL of its own; and what is measured of it.

    with attacked(folder) as target:
        judge = Judge(target)
        judge.run(TRIES)
        judge.verdicts

A user asks `GET users/me` on new connections from another address while the tries run. After each try: an answer within
the limit, the same processes, no traceback in the log. After each group: descriptors, memory and temporary files.
"""

from __future__ import annotations

import contextlib
import re
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.attacks.strangers.place import CONTEXT
from tests.attacks.tries import Carrier, WireTry, play
from tests.kit.free_ports import free_port
from tests.kit.server.server_process import Loopback, open_loopback
from tests.kit.stand_ins.certificates import Authority

PASSWORD = "SomeSecurePassword!"
ATTACKER, USER = "127.0.0.66", "127.0.0.2"
SLOWER = 3.0
"""Times the undisturbed answer that a user may wait."""
FLOOR = 0.05
"""Seconds below which a wait is not told from the machine's own."""
MOST_CPU = 0.5
"""Seconds of CPU time that one try may cost all processes together."""
MORE_FILES, MORE_MEMORY = 8, 24 << 20
"""Descriptors and bytes (PSS) that a group of tries may leave behind, the latter when it is played again."""
_TRACE = re.compile(r"^Traceback|^  File \"|a connection failed|a request failed|process of the server failed", re.M)


@dataclass
class Target:
    """The server, its users and its processes."""

    server: Loopback
    secure: str
    "Address with TLS."
    temporary: Path
    tokens: dict[str, str] = field(default_factory=dict)
    undisturbed: float = FLOOR

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.server.url.removeprefix("http://").rpartition(":")
        return host, int(port)

    def connect(self, carrier: Carrier = "tcp", source: str = ATTACKER) -> socket.socket:
        if carrier == "tcp":
            return socket.create_connection(self.address, 10, (source, 0))
        host, _, port = self.secure.rpartition(":")
        if carrier == "raw-tls":
            return socket.create_connection((host, int(port)), 10, (source, 0))
        return CONTEXT.wrap_socket(socket.create_connection((host, int(port)), 10, (source, 0)))

    def ask(self) -> float:
        """Return the seconds of the user's request on a new connection. Raises AssertionError for another answer."""
        began = time.monotonic()
        with self.connect(source=USER) as stream:
            head = f"GET /api/v2/users/me HTTP/1.1\r\nHost: {self.server.url[7:]}\r\nConnection: close\r\n"
            stream.sendall(f"{head}Coder-Session-Token: {self.tokens['user']}\r\n\r\n".encode())
            answer = b""
            while piece := stream.recv(1 << 16):
                answer += piece
        assert b" 200 " in answer[:20], answer[:300]
        return time.monotonic() - began

    def processes(self) -> dict[int, str]:
        """Return the names of the server's processes by pid, without those that come and go by themselves."""
        assert self.server.server is not None
        found: dict[int, str] = {}
        waiting = [self.server.server.pid]
        while waiting:
            pid = waiting.pop()
            with contextlib.suppress(OSError):
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
                name = Path(f"/proc/{pid}/comm").read_text().strip()
                found[pid] = "sandbox" if b"sandbox-worker" in command else name
                if name == "postgres":
                    continue  # its backends come and go
                for task in Path(f"/proc/{pid}/task").iterdir():
                    waiting += map(int, (task / "children").read_text().split())
        return found

    def cpu(self) -> float:
        """Return the seconds of CPU time of all processes."""
        total = 0.0
        for pid in self.processes():
            with contextlib.suppress(OSError, IndexError):
                for task in Path(f"/proc/{pid}/task").iterdir():
                    total += int((task / "schedstat").read_text().split()[0]) / 1e9
        return total

    def files(self) -> dict[str, int]:
        """Return the open descriptors by process."""
        return {
            f"{name} {pid}": sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()) for pid, name in self.processes().items()
        }

    def memory(self) -> int:
        """Return the bytes of all processes, shared ones counted once."""
        total = 0
        for pid in self.processes():
            with contextlib.suppress(OSError):
                line = re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)
                total += int(line[1]) << 10 if line else 0
        return total

    def leftovers(self) -> set[str]:
        """Return the temporary files and folders."""
        return {str(path.relative_to(self.temporary)) for path in self.temporary.rglob("*")}

    def log(self) -> str:
        return (self.server.folder / "srv.log").read_text(errors="replace")

    def settle(self) -> None:
        """Measure the undisturbed answer."""
        times = sorted(self.ask() for _ in range(40))
        self.undisturbed = max(times[-2], FLOOR)


@dataclass
class Verdict:
    """What a try did."""

    process: str
    name: str
    faults: list[str] = field(default_factory=list)
    cpu: float = 0.0
    answer: bytes = b""


class Judge:
    """Plays tries and judges each."""

    def __init__(self, target: Target, carrier: Carrier = "tcp") -> None:
        self.target, self._carrier = target, carrier
        self.verdicts: list[Verdict] = []

    def run(self, tries: Sequence[WireTry]) -> list[Verdict]:
        return self.group([(item.process, item.name, partial(self._play, item)) for item in tries])

    def group(self, tries: Sequence[tuple[str, str, Callable[[], bytes]]]) -> list[Verdict]:
        """Judge (process, kind, try) one after the other, then what they left behind together."""
        target, done = self.target, list[Verdict]()
        target.settle()
        files, memory, leftovers = target.files(), target.memory(), target.leftovers()
        for process, name, play_it in tries:
            done.append(self._judge(process, name, play_it))
        if done:
            done[-1].faults += self._left(files, leftovers)
            if (grown := target.memory()) > memory + MORE_MEMORY:
                # A first use fills caches and pools; what grows as much again is a leak.
                for _, _, play_it in tries:
                    play_it()
                if (growth := target.memory() - grown) > MORE_MEMORY:
                    done[-1].faults.append(f"memory: {growth >> 20} MiB more, the second time")
        self.verdicts += done
        return done

    def _play(self, item: WireTry) -> bytes:
        words = {b"{token}": self.target.tokens["attacker"].encode(), b"{host}": self.target.server.url[7:].encode()}
        steps = []
        for step in item.steps:
            if isinstance(step, bytes):
                for word, value in words.items():
                    step = step.replace(word, value)
            steps.append(step)
        try:
            stream = self.target.connect(self._carrier if item.carrier == "tcp" else item.carrier)
        except OSError as error:
            return repr(error).encode()
        return play(stream, steps)

    def _judge(self, process: str, name: str, play_it: Callable[[], bytes]) -> Verdict:
        target, verdict = self.target, Verdict(process, name)
        before, logged, spent = target.processes(), len(target.log()), target.cpu()
        verdict.answer = play_it()
        slowest = self._wait()
        verdict.cpu = target.cpu() - spent
        if slowest > SLOWER * target.undisturbed and verdict.cpu > MOST_CPU / 2:
            verdict.faults.append(f"users/me took {slowest:.3f} s")
        if verdict.cpu > MOST_CPU:
            verdict.faults.append(f"{verdict.cpu:.2f} s of CPU time")
        now = target.processes()
        gone = {pid: name for pid, name in before.items() if pid not in now}
        if gone:
            verdict.faults.append(f"processes ended: {gone}")
        text = target.log()[logged:]
        if _TRACE.search(text):
            verdict.faults.append(f"log: {text[-1500:]}")
        if any(token in text or token.encode() in verdict.answer for token in target.tokens.values()):
            verdict.faults.append("a secret is in the log or the answer")
        if verdict.answer[9:12] == b"500":
            verdict.faults.append(f"status 500: {verdict.answer[:300]!r}; log: {text[-600:]}")
        return verdict

    def _wait(self) -> float:
        try:
            return min(self.target.ask() for _ in range(2))
        except (OSError, AssertionError):
            return 60.0

    def _left(self, files: dict[str, int], leftovers: set[str]) -> list[str]:
        target, faults = self.target, []
        until = time.monotonic() + 8
        more: dict[str, tuple[int, int]] = {}
        while time.monotonic() < until:
            now = target.files()
            more = {name: (files[name], now[name]) for name in files.keys() & now.keys()}
            more = {name: pair for name, pair in more.items() if pair[1] > pair[0] + MORE_FILES}
            if not more and target.leftovers() <= leftovers:
                break
            time.sleep(0.2)
        if more:
            faults.append(f"descriptors: {more}")
        if left := target.leftovers() - leftovers:
            faults.append(f"temporary files: {sorted(left)[:10]}")
        return faults


@contextlib.contextmanager
def attacked(folder: Path, *options: str, processes: int = 2) -> Iterator[Target]:
    """A server of so many processes that accept, with two users: `attacker`, a member, and `user`, the owner."""
    certificate, key = Authority(folder).issue("localhost")
    secure = f"127.0.0.1:{free_port()}"
    tls = ("--tls-enable", "--tls-address", secure, "--tls-cert-file", certificate, "--tls-key-file", key)
    temporary = folder / "tmp"
    temporary.mkdir(mode=0o1777)
    temporary.chmod(0o1777)

    def before(server: Loopback) -> None:
        server.variables["TMPDIR"] = str(temporary)

    words = ("--processes", str(processes), *tls, "--dangerous-disable-rate-limits", *options)
    with open_loopback(*words, before=before) as server:
        target = Target(server, secure, temporary)
        first = {"email": "ana@example.com", "username": "ana", "password": PASSWORD}
        server.request("POST", "/api/v2/users/first", first)
        server.sign_in(first["email"], PASSWORD)
        target.tokens["user"] = server.token
        organization = server.request("GET", "/api/v2/organizations/default", None, server.token)["id"]
        other = {"email": "eve@example.com", "username": "eve", "password": PASSWORD, "login_type": "password"}
        server.request("POST", "/api/v2/users", {**other, "organization_ids": [organization]}, server.token)
        body = {"email": other["email"], "password": PASSWORD}
        target.tokens["attacker"] = server.request("POST", "/api/v2/users/login", body)["session_token"]
        yield target
