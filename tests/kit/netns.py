"""Network namespaces for tests: machines with addresses, joined by virtual cables.

Needs root and `ip`; `available()` says whether this machine can. Everything a Net made is gone when its block is left.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import count

_numbers = count(1)


@lru_cache
def available() -> bool:
    """Whether namespaces can be made here."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"probe{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode == 0
    if made:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return made


class Net:
    """Namespaces and cables; names are local to the test."""

    def __init__(self) -> None:
        self._prefix = f"t{os.getpid()}-{next(_numbers)}-"
        self._names: list[str] = []

    def add(self, name: str) -> str:
        """A machine with a loopback interface."""
        self.ip("netns", "add", self._prefix + name)
        self._names.append(name)
        self.run(name, "ip", "link", "set", "dev", "lo", "up")
        return name

    def cable(self, one: str, one_address: str, two: str, two_address: str) -> None:
        """Join two machines; addresses with prefix length. The interface is named after the other end."""
        self.ip(
            "link",
            "add",
            two,
            "netns",
            self._prefix + one,
            "type",
            "veth",
            "peer",
            "name",
            one,
            "netns",
            self._prefix + two,
        )
        for here, there, address in ((one, two, one_address), (two, one, two_address)):
            self.run(here, "ip", "address", "add", address, "dev", there, "nodad")
            self.run(here, "ip", "link", "set", "dev", there, "up")

    def route(self, name: str, via: str) -> None:
        """The machine's default route."""
        self.run(name, "ip", "route", "add", "default", "via", via)

    def forward(self, name: str, on: bool) -> None:
        """Whether the machine forwards IPv4 between its cables."""
        self.run(name, "sysctl", "-qw", f"net.ipv4.ip_forward={int(on)}")

    def command(self, name: str, *command: str) -> list[str]:
        """The command line that runs in the machine."""
        return ["ip", "netns", "exec", self._prefix + name, *command]

    def run(self, name: str, *command: str) -> str:
        """Run a command in the machine; -> its output."""
        return self._checked(self.command(name, *command))

    def ip(self, *arguments: str) -> str:
        """Run `ip` outside of all machines."""
        return self._checked(["ip", *arguments])

    @staticmethod
    def _checked(command: list[str]) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout

    def close(self) -> None:
        """Remove everything."""
        for name in self._names:
            self.ip("netns", "del", self._prefix + name)
        self._names.clear()


@contextmanager
def open_net() -> Iterator[Net]:
    """A Net for a block."""
    net = Net()
    try:
        yield net
    finally:
        net.close()
