"""The Debian package: the same bytes each time, and installed, upgraded, removed and purged by the real dpkg.

That happens in this machine's own root under an overlay, which vanishes with the process that made it: dpkg runs the
package's scripts with the real useradd, and a systemctl that writes down what it is told.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from coder.base.version import BUILD_VERSION
from tests.kit.paths import ROOT

sys.path.insert(0, str(ROOT / "build"))
import deb

PROGRAM = b"#!/bin/sh\necho installed\n"
pytestmark = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is needed")

IN_OVERLAY = """
set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount --bind /dev "$1/root/dev"
cp "$2" "$1/root/root/coder.deb"
exec chroot "$1/root" /bin/sh -euc "$3"
"""
LIFE = """
export PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive
at() { echo "== $*"; cat /root/told 2>/dev/null || true; rm -f /root/told; }
dpkg --purge --force-depends coder >/dev/null 2>&1 || true
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
dpkg -i /root/coder.deb >/dev/null
at installed
getent passwd coder | cut -d: -f6,7
stat -c '%a %U %n' /usr/bin/coder /etc/coder.d/coder.env
/usr/bin/coder
ls /lib/systemd/system | grep '^coder'
echo CODER_ACCESS_URL=https://kept.example.com >>/etc/coder.d/coder.env
mkdir -p /var/cache/coder /var/lib/coder
dpkg -i /root/coder.deb >/dev/null 2>&1
at upgraded
tail -n1 /etc/coder.d/coder.env
dpkg -r coder >/dev/null
at removed
ls -d /etc/coder.d/coder.env /usr/bin/coder 2>/dev/null || true
dpkg --purge coder 2>&1 >/dev/null
at purged
ls -d /etc/coder.d /var/cache/coder /var/lib/coder 2>/dev/null || true
dpkg-query -W coder 2>/dev/null || true
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    program = tmp_path / "coder"
    program.write_bytes(PROGRAM)
    arch = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()
    ours = {debian: name for name, debian in deb.DEBIAN_ARCH.items()}
    deb.build(program, ours[arch], tmp_path / "one.deb")
    return tmp_path / "one.deb"


def test_package_is_reproducible(package: Path, tmp_path: Path) -> None:
    arch = subprocess.run(["dpkg-deb", "-f", package, "Architecture"], capture_output=True, text=True, check=True)
    name = next(name for name, debian in deb.DEBIAN_ARCH.items() if debian == arch.stdout.strip())
    deb.build(tmp_path / "coder", name, tmp_path / "two.deb")
    assert package.read_bytes() == (tmp_path / "two.deb").read_bytes()
    shown = subprocess.run(["dpkg-deb", "--info", package], capture_output=True, text=True, check=True)
    assert f"Version: {deb.version()}" in shown.stdout and f"v{deb.version()}" == BUILD_VERSION


@pytest.mark.parametrize("name", ["postinst", "prerm", "postrm"])
def test_its_scripts_are_shell(name: str) -> None:
    subprocess.run(["sh", "-n", deb.SOURCES / name], check=True)


def test_its_life(package: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("a root of one's own needs root and unshare")
    (tmp_path / "overlay").mkdir()
    command = ["unshare", "-m", "sh", "-c", IN_OVERLAY, "sh", str(tmp_path / "overlay"), str(package)]
    can = subprocess.run([*command, "true"], capture_output=True, check=False)
    if can.returncode:
        pytest.skip(f"no overlay of this machine's root can be made: {can.stderr.decode().strip()}")
    done = subprocess.run([*command, LIFE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    stages = {part.partition("\n")[0]: part.splitlines()[1:] for part in done.stdout.split("== ")[1:]}
    assert [line for line in stages["installed"] if not line.startswith("systemctl")] == [
        "/var/lib/coder:/usr/sbin/nologin",
        "755 root /usr/bin/coder",
        "640 root /etc/coder.d/coder.env",
        "installed",
        *sorted(deb.UNITS),
    ]
    assert "systemctl daemon-reload" in stages["installed"]
    assert not [line for line in stages["installed"] if "start" in line.split()], "none is started by itself"
    assert "systemctl try-restart coder.service coder-provisioner.service" in stages["upgraded"]
    assert stages["upgraded"][-1] == "CODER_ACCESS_URL=https://kept.example.com"
    disabled = {word for line in stages["removed"] if " disable --now " in line for word in line.split()[3:]}
    assert disabled == {"coder.service", "coder-provisioner.service", "coder-agent@alice.service"}
    left = [line for line in stages["removed"] if line.startswith("/")]
    assert left == ["/etc/coder.d/coder.env"], "settings stay until they are purged"
    assert [line for line in stages["purged"] if line.startswith("/")] == ["/var/lib/coder"]
    assert "coder: /var/lib/coder holds the database and is left; remove it yourself" in done.stdout


def test_units_pass_systemd_analyze(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is needed")
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/coder").write_bytes(PROGRAM)
    (tmp_path / "usr/bin/coder").chmod(0o755)
    folder = tmp_path / "lib/systemd/system"
    folder.mkdir(parents=True)
    for name in ("sysinit", "basic", "shutdown", "network-online", "multi-user"):
        (folder / f"{name}.target").write_text("[Unit]\nDefaultDependencies=no\n")
    units = []
    for name in deb.UNITS:
        units.append(folder / name.replace("@.", "@alice."))  # a template is read as one of its instances
        shutil.copyfile(deb.SOURCES / name, units[-1])
    checked = subprocess.run(
        ["systemd-analyze", "verify", f"--root={tmp_path}", "--man=no", *units],
        capture_output=True,
        text=True,
        check=False,
    )
    ours = [line for line in checked.stderr.splitlines() if "coder" in line]
    assert not ours, checked.stderr
