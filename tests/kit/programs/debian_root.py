"""This machine's own root under an overlay, in which dpkg and apt install for real; it vanishes with its process."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

_IN_OVERLAY = """
set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount --bind /dev "$1/root/dev"
rm -rf "$1/root/given"
cp -r "$2" "$1/root/given"
exec chroot "$1/root" /bin/sh -euc "$3"
"""
PREPARE = """
export PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C
at() { echo "== $*"; cat /root/told 2>/dev/null || true; rm -f /root/told; }
dpkg --purge --force-depends coder coder-py >/dev/null 2>&1 || true
! getent passwd coder >/dev/null || userdel coder
rm -rf /etc/coder.d /var/cache/coder /var/lib/coder
mkdir -p /run/systemd/system /usr/local/sbin
rm -f /usr/bin/systemctl
cat >/usr/bin/systemctl <<'END'
#!/bin/sh
echo "systemctl $*" >>/root/told
case "$*" in list-units*) echo "coder-agent@alice.service loaded active running Coder" ;; esac
END
chmod 755 /usr/bin/systemctl
"""
"""Removes what this machine has installed, and puts a systemctl in place that writes down its arguments; `at STAGE`
prints them."""


def run(scratch: Path, given: Path, script: str) -> dict[str, list[str]]:
    """Run a script of `at` stages in such a root, with the folder `given` as /given, and return each stage's lines.
    Skips the test where no overlay can be made."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("a root of one's own needs root and unshare")
    scratch.mkdir()
    command = ["unshare", "-m", "sh", "-c", _IN_OVERLAY, "sh", str(scratch), str(given)]
    can = subprocess.run([*command, "true"], capture_output=True, check=False)
    if can.returncode:
        pytest.skip(f"no overlay of this machine's root can be made: {can.stderr.decode().strip()}")
    done = subprocess.run([*command, PREPARE + script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return {part.partition("\n")[0]: part.splitlines()[1:] for part in done.stdout.split("== ")[1:]}
