"""Network namespaces: machines with addresses, virtual cables, NAT routers, packet loss. Needs root and `ip`.

`open_net` makes single machines; all of them are gone when the block is left. `open_nat_network` makes

core (bridge 10.77.0.0/24)
  ├── srv     10.77.0.10
  ├── nata    10.77.0.2  ── agent  192.168.71.2   (everything inbound dropped, masquerade)
  └── natb    10.77.0.3  ── client 192.168.72.2   (the same; or behind nata as well, see `shared`)
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count

SERVER = "10.77.0.10"
BLOCK_UDP = """
table inet block {
  chain through {
    type filter hook forward priority -10;
    meta l4proto udp drop
  }
}
"""


def missing_tools() -> str:
    """Why namespaces cannot be used here; empty when they can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    tools = [tool for tool in ("ip", "nft") if find_tool(tool) == ""]
    return f"not installed: {', '.join(tools)}" if tools else ""


def find_tool(tool: str) -> str:
    return shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") or ""


def run_tool(*argv: str, check: bool = True, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [find_tool(argv[0]) or argv[0], *argv[1:]], check=check, text=True, capture_output=True, input=stdin
    )


@dataclass
class NatNetwork:
    """The namespaces of one test session."""

    tag: str
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def name(self, host: str) -> str:
        return f"{self.tag}{host}"

    def argv(self, host: str, command: Sequence[str]) -> list[str]:
        return [find_tool("ip"), "netns", "exec", self.name(host), *command]

    def run(
        self, host: str, *command: str, env: Mapping[str, str] | None = None, stdin: bytes = b"", timeout: float = 120
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            self.argv(host, command), env=env, input=stdin, capture_output=True, timeout=timeout, check=False
        )

    def spawn(
        self, host: str, *command: str, env: Mapping[str, str] | None = None, log: str = os.devnull
    ) -> subprocess.Popen[bytes]:
        with open(log, "ab") as out:  # noqa: PTH123 - /dev/null is no file
            process = subprocess.Popen(
                self.argv(host, command),
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def nft(self, host: str, rules: str) -> None:
        subprocess.run(
            self.argv(host, [find_tool("nft"), "-f", "-"]), input=rules.encode(), check=True, capture_output=True
        )

    def drop_udp(self) -> None:
        """No UDP passes either router; what was open is closed."""
        for router in ("nata", "natb"):
            self.nft(router, BLOCK_UDP)

    def allow_udp(self) -> None:
        for router in ("nata", "natb"):
            subprocess.run(
                self.argv(router, [find_tool("nft"), "delete", "table", "inet", "block"]),
                check=False,
                capture_output=True,
            )

    def lose_packets(self, host: str, percent: int) -> None:
        """Of what a host sends and receives, so many in a hundred are lost from now on; 0: none."""
        rules = "add table inet lossy\ndelete table inet lossy\n"
        if percent:
            chains = "".join(
                f"chain {hook} {{\ntype filter hook {hook} priority 0;\n"
                f'oifname != "lo" iifname != "lo" numgen random mod 100 < {percent} drop\n}}\n'
                for hook in ("input", "output")
            )
            rules += f"table inet lossy {{\n{chains}}}\n"
        self.nft(host, rules)

    def unplug(self, host: str, *, plugged: bool = False) -> None:
        """Pulls the cable of a host (or puts it back)."""
        run_tool("ip", "-n", self.name(host), "link", "set", "eth0", "up" if plugged else "down")
        if plugged:
            gateway = {"agent": "192.168.71.1", "client": "192.168.72.1"}.get(host)
            if gateway:
                run_tool("ip", "-n", self.name(host), "route", "replace", "default", "via", gateway)

    def move(self, host: str, address: str) -> None:
        """The host gets another address of its router's network; the old one is gone."""
        name, gateway = self.name(host), {"agent": "192.168.71.1", "client": "192.168.72.1"}[host]
        run_tool("ip", "-n", name, "addr", "flush", "dev", "eth0", "scope", "global")
        run_tool("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
        run_tool("ip", "-n", name, "route", "replace", "default", "via", gateway)

    def lend_ports(self, router: str) -> None:
        """The router takes requests for ports from its network and lets through what was mapped."""
        self.nft(
            router,
            """
            insert rule inet walls inbound iifname "lan" udp dport 5351 accept
            insert rule inet walls through ct status dnat accept
            add chain ip nat pre { type nat hook prerouting priority -100; }
            """,
        )

    def turn_around(self, router: str, address: str, ports: Mapping[str, int]) -> None:
        """The router turns packets from inside to its own address around (hairpin): `ports` are of hosts inside."""
        rules = "".join(
            f"add rule ip nat pre ip daddr {address} udp dport {port} dnat to {host}:{port}\n"
            for host, port in ports.items()
        )
        self.nft(
            router,
            "add chain ip nat pre { type nat hook prerouting priority -100; }\n"
            + rules
            + f'add rule ip nat post iifname "lan*" oifname "lan*" snat to {address}\n'
            "insert rule inet walls through ct status dnat accept\n",
        )

    def one_way(self, router: str) -> None:
        """UDP leaves through the router, and nothing of it comes back."""
        self.nft(router, BLOCK_UDP.replace("meta l4proto udp", 'iifname "eth0" meta l4proto udp'))


@contextmanager
def open_nat_network(
    *, hard: Sequence[str] = (), shared: bool = False, servers: Mapping[str, str] = {}
) -> Iterator[NatNetwork]:
    """Builds the topology; removes it and everything started in it at the end.

    Those in `hard` (`nata`, `natb`) give every connection a port of its own: endpoint-dependent mapping. `shared`: the
    client is behind nata, too, in a network of its own from which no way leads to the agent's. `servers` are further
    hosts at the bridge, with their addresses.
    """
    world = NatNetwork(f"c{os.getpid() % 100000}")
    hosts = ("core", "srv", "nata", "natb", "agent", "client", *servers)
    try:
        for host in hosts:
            run_tool("ip", "netns", "add", world.name(host))
            run_tool("ip", "-n", world.name(host), "link", "set", "lo", "up")
        run_tool("ip", "-n", world.name("core"), "link", "add", "br0", "type", "bridge")
        run_tool("ip", "-n", world.name("core"), "link", "set", "br0", "up")
        for host, address in {"srv": SERVER, "nata": "10.77.0.2", "natb": "10.77.0.3", **servers}.items():
            _to_bridge(world, host, address)
        _behind(world, "nata", "agent", "192.168.71", "fully-random" if "nata" in hard else "")
        if shared:
            _cable(world, "nata", "client", "192.168.72", "lan2")
            world.nft("nata", 'add rule inet walls through iifname "lan2" oifname "eth0" accept')
            world.nft("nata", 'insert rule inet walls through iifname "lan" oifname "lan2" drop')
        else:
            _behind(world, "natb", "client", "192.168.72", "fully-random" if "natb" in hard else "")
        yield world
    finally:
        for process in world.processes:
            _end(process)
        for host in hosts:
            run_tool("ip", "netns", "del", world.name(host), check=False)


def _to_bridge(world: NatNetwork, host: str, address: str) -> None:
    core, name = world.name("core"), world.name(host)
    run_tool("ip", "-n", core, "link", "add", f"v{host}", "type", "veth", "peer", "name", "eth0", "netns", name)
    run_tool("ip", "-n", core, "link", "set", f"v{host}", "master", "br0", "up")
    run_tool("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
    run_tool("ip", "-n", name, "link", "set", "eth0", "up")


def _behind(world: NatNetwork, router: str, host: str, net: str, ports: str = "") -> None:
    """A host behind a NAT router that drops every packet nobody inside asked for."""
    _cable(world, router, host, net, "lan")
    run_tool("ip", "netns", "exec", world.name(router), "sysctl", "-qw", "net.ipv4.ip_forward=1", check=False)
    world.nft(
        router,
        f"""
        table ip nat {{
          chain post {{
            type nat hook postrouting priority 100;
            oifname "eth0" masquerade {ports}
          }}
        }}
        """
        """
        table inet walls {
          chain inbound {
            type filter hook input priority 0; policy drop;
            iifname "lo" accept
            ct state established,related accept
          }
          chain through {
            type filter hook forward priority 0; policy drop;
            ct state established,related accept
            iifname "lan" accept
          }
        }
        """,
    )


def _cable(world: NatNetwork, router: str, host: str, net: str, plug: str) -> None:
    name, inner = world.name(router), world.name(host)
    run_tool("ip", "-n", name, "link", "add", plug, "type", "veth", "peer", "name", "eth0", "netns", inner)
    run_tool("ip", "-n", name, "addr", "add", f"{net}.1/24", "dev", plug)
    run_tool("ip", "-n", name, "link", "set", plug, "up")
    run_tool("ip", "-n", inner, "addr", "add", f"{net}.2/24", "dev", "eth0")
    run_tool("ip", "-n", inner, "link", "set", "eth0", "up")
    run_tool("ip", "-n", inner, "route", "add", "default", "via", f"{net}.1")


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (15, 9):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            continue
        return


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
