"""A deployment without a way out: it works, and nothing of it tries to leave.

The machine's only cable leads to a neighbour that answers nothing; its default route and its name server lie there. The
kernel counts what is sent that way.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.network.network_namespaces import Net, available, open_net

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests/system/air_gapped_program.py"
RULES = """
table inet gap {
    set places { type ipv4_addr . inet_proto . inet_service; flags dynamic; size 1024; }
    counter left { }
    chain out {
        type filter hook output priority 0;
        oifname "lo" accept
        meta l4proto { tcp, udp } add @places { ip daddr . meta l4proto . th dport }
        counter name "left" drop
    }
}
"""
DONE = ["server", "dashboard", "build", "agent", "backup", "deleted"]
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not available(), reason="network namespaces need root"),
    pytest.mark.skipif(shutil.which("nft") is None, reason="nft counts the packets"),
]


@pytest.fixture
def gap(tmp_path: Path) -> Iterator[Net]:
    with open_net() as net:
        net.add("here")
        net.add("world")
        net.cable("here", "192.0.2.1/24", "world", "192.0.2.2/24")
        net.run("here", "sysctl", "-qw", "net.ipv6.conf.world.disable_ipv6=1")  # the kernel itself would look around
        net.route("here", "192.0.2.2")
        # `ip netns exec` puts this in the place of /etc/resolv.conf.
        settings = Path("/etc/netns") / net.command("here")[3]
        settings.mkdir(parents=True)
        rules = tmp_path / "rules.nft"
        rules.write_text(RULES)
        (settings / "resolv.conf").write_text("nameserver 192.0.2.2\noptions timeout:1 attempts:1\n")
        try:
            net.run("here", "nft", "-f", str(rules))
            yield net
        finally:
            shutil.rmtree(settings)


def left(net: Net) -> str:
    """What tried to leave, as the kernel lists it; empty when nothing did."""
    counted = net.run("here", "nft", "list", "counter", "inet", "gap", "left")
    if "packets 0 " in counted:
        return ""
    return net.run("here", "nft", "list", "set", "inet", "gap", "places")


def test_counter_sees_packets_and_lookups(gap: Net) -> None:
    """A test that cannot fail would say nothing below."""
    ask = "import socket\ntry: socket.getaddrinfo('example.com', 80)\nexcept OSError: pass"
    assert left(gap) == ""
    subprocess.run(gap.command("here", sys.executable, "-c", ask), check=True)
    assert "192.0.2.2 . udp . 53" in left(gap)
    reach = "import socket\ntry: socket.create_connection(('203.0.113.7', 443), 0.2)\nexcept OSError: pass"
    subprocess.run(gap.command("here", sys.executable, "-c", reach), check=True)
    assert "203.0.113.7 . tcp . 443" in left(gap)


def test_everything_works_and_nothing_leaves(gap: Net) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": "/root", "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT)}
    env |= {name: os.environ[name] for name in ("CODER_TEST_BINARY",) if name in os.environ}
    command = gap.command("here", sys.executable, str(PROGRAM))
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr[-6000:]
    assert done.stdout.split() == DONE
    assert left(gap) == ""
