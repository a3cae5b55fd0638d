"""What every group of tries is judged by: another user's waiting time, processes, logs, descriptors, memory, files."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.attacks.strangers.place import VICTIM, Address, Place, connect

INTERVAL = 0.03
TIMES = 3.0
"An attack may make the victim wait so many times the undisturbed p95 …"
FLOOR = 0.25
"… but a wait below this says more about the machine, which other programs share."
SPARE_DESCRIPTORS = 6
"Kept connections to applications, the database and siblings come and go."
SPARE_MEMORY = 24 << 20
TRACE = re.compile(r"^\s*(?:\||\+)?\s*(?:Traceback \(most recent|\+ Exception Group)", re.MULTILINE)

DEFECT = re.compile(r"a connection failed|a job crashed|stale UNIX socket|never awaited|Exception ignored")
"""Lines of processes that met what they did not expect."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """State of one process."""

    pid: int
    descriptors: int
    memory: int

    @staticmethod
    def of(pid: int) -> Snapshot:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        pss = re.search(r"^Pss: +(\d+)", rollup, re.MULTILINE)
        return Snapshot(pid, len(list(Path(f"/proc/{pid}/fd").iterdir())), int(pss[1]) << 10 if pss else 0)


@dataclass
class Victim:
    """Asks `GET users/me` on new connections until the block ends; `waits` are its seconds."""

    address: Address
    token: str
    waits: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @contextlib.contextmanager
    def asking(self) -> Iterator[Victim]:
        ended = threading.Event()

        def ask() -> None:
            while not ended.wait(INTERVAL):
                self.ask()

        thread = threading.Thread(target=ask)
        thread.start()
        try:
            yield self
        finally:
            ended.set()
            thread.join()

    def ask(self) -> None:
        began = time.perf_counter()
        head = f"GET /api/v2/users/me HTTP/1.1\r\nHost: x\r\nConnection: close\r\nCoder-Session-Token: {self.token}\r\n"
        try:
            with connect(self.address, VICTIM, 20) as stream:
                stream.sendall(head.encode() + b"\r\n")
                answer = stream.recv(64)
        except OSError as error:
            answer = str(error).encode()
        self.waits.append(time.perf_counter() - began)
        if not answer.startswith(b"HTTP/1.1 200"):
            self.failed.append(answer.decode("latin-1"))


def percentile(waits: list[float], share: float) -> float:
    return sorted(waits)[min(len(waits) - 1, int(len(waits) * share))]


@dataclass
class Judge:
    """Compares before and after a group. `findings` are sentences, one a violation."""

    place: Place
    secrets: Mapping[str, str]
    findings: list[str] = field(default_factory=list)
    undisturbed: float = 0.0
    rows: list[tuple[str, int, float]] = field(default_factory=list)
    "Group, tries, the victim's p95 as a multiple of the undisturbed one."

    def __post_init__(self) -> None:
        self._seen = {path: path.stat().st_size for path in self._logs()}

    def _logs(self) -> list[Path]:
        return sorted(self.place.server.folder.glob("*.log"))

    def measure_undisturbed(self, seconds: float = 1.0) -> None:
        with self._victim().asking() as victim:
            time.sleep(seconds)
        self.undisturbed = percentile(victim.waits, 0.95)

    def _victim(self) -> Victim:
        return Victim(self.place.address, self.place.user_token)

    def state(self) -> dict[str, Snapshot]:
        return {name: Snapshot.of(pid) for name, pid in self.place.pids().items()}

    def take_findings(self) -> list[str]:
        """Return the findings since the last call. Tests share a judge; each fails by its own findings."""
        taken, self.findings = self.findings, []
        return taken

    def group(self, name: str, tries: int, attack: Callable[[], None]) -> None:
        """Run one group and judge it."""
        self.measure_undisturbed()
        before, files = self.state(), self.place.temporary_files()
        with self._victim().asking() as victim:
            attack()
        for failure in set(victim.failed):
            self.findings.append(f"{name}: the victim was answered {failure!r}")
        waited = percentile(victim.waits, 0.95) if victim.waits else 0.0
        if waited > max(TIMES * self.undisturbed, FLOOR):
            self.findings.append(f"{name}: the victim waited {waited * 1000:.0f} ms")
        self.rows.append((name, tries, waited / self.undisturbed))
        self._compare(name, before)
        left = self.place.temporary_files() - files
        if left:
            self.findings.append(f"{name}: left {sorted(left)[:5]}")
        self._read_logs(name)

    def _compare(self, name: str, before: Mapping[str, Snapshot]) -> None:
        limit = time.monotonic() + 20
        while True:
            after = self.state()
            wrong = list(_differences(before, after))
            if not wrong:
                return
            if time.monotonic() > limit:
                self.findings += [f"{name}: {text}" for text in wrong]
                return
            time.sleep(0.25)

    def _read_logs(self, name: str) -> None:
        for path in self._logs():
            with path.open("rb") as log:
                log.seek(self._seen.get(path, 0))
                text = log.read().decode(errors="replace")
            self._seen[path] = self._seen.get(path, 0) + len(text.encode(errors="replace"))
            if DEFECT.search(text):
                self.findings.append(f"{name}: a defect in {path.name}: {text[-1500:]}")
            if TRACE.search(text):
                self.findings.append(f"{name}: a traceback in {path.name}: {text[-1500:]}")
            self.search(f"{name}: {path.name}", text)

    def search(self, where: str, text: str) -> None:
        """Look for secrets in a log or an answer."""
        for what, secret in self.secrets.items():
            if secret and secret in text:
                self.findings.append(f"{where}: contains {what}")


def _differences(before: Mapping[str, Snapshot], after: Mapping[str, Snapshot]) -> Iterator[str]:
    for name, then in before.items():
        now = after.get(name)
        if now is None or now.pid != then.pid:
            yield f"{name} ended"
        elif now.descriptors > then.descriptors + SPARE_DESCRIPTORS:
            yield f"{name} has {now.descriptors} descriptors instead of {then.descriptors}"
        elif now.memory > then.memory + SPARE_MEMORY:
            yield f"{name} has {now.memory >> 20} MiB instead of {then.memory >> 20}"
