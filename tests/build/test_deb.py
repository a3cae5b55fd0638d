"""The Debian package: the same bytes each time, and installed, upgraded, removed and purged by the real dpkg.

That happens in this machine's own root under an overlay, which vanishes with the process that made it: dpkg runs the
package's scripts with the real useradd, and a systemctl that writes down what it is told.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from coder.base.version import BUILD_VERSION
from tests.kit.paths import ROOT
from tests.kit.programs import debian_root

sys.path.insert(0, str(ROOT / "build"))
import deb

PROGRAM = b"#!/bin/sh\necho installed\n"
pytestmark = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is needed")

LIFE = """
dpkg -i /given/one.deb >/dev/null
at installed
getent passwd coder | cut -d: -f6,7
stat -c '%a %U %n' /usr/bin/coder /etc/coder.d/coder.env
/usr/bin/coder
ls /lib/systemd/system | grep '^coder'
echo CODER_ACCESS_URL=https://kept.example.com >>/etc/coder.d/coder.env
mkdir -p /var/cache/coder /var/lib/coder
dpkg -i /given/one.deb >/dev/null 2>&1
at upgraded
tail -n1 /etc/coder.d/coder.env
dpkg -r coder-py >/dev/null
at removed
ls -d /etc/coder.d/coder.env /usr/bin/coder 2>/dev/null || true
dpkg --purge coder-py 2>&1 >/dev/null
at purged
ls -d /etc/coder.d /var/cache/coder /var/lib/coder 2>/dev/null || true
dpkg-query -W coder-py 2>/dev/null || true
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    program = tmp_path / "coder"
    program.write_bytes(PROGRAM)
    arch = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()
    ours = {debian: name for name, debian in deb.DEBIAN_ARCH.items()}
    (tmp_path / "made").mkdir()
    deb.build(program, ours[arch], tmp_path / "made/one.deb")
    return tmp_path / "made/one.deb"


def test_package_is_reproducible(package: Path, tmp_path: Path) -> None:
    arch = subprocess.run(["dpkg-deb", "-f", package, "Architecture"], capture_output=True, text=True, check=True)
    name = next(name for name, debian in deb.DEBIAN_ARCH.items() if debian == arch.stdout.strip())
    deb.build(tmp_path / "coder", name, tmp_path / "two.deb")
    assert package.read_bytes() == (tmp_path / "two.deb").read_bytes()
    shown = subprocess.run(["dpkg-deb", "--info", package], capture_output=True, text=True, check=True)
    assert f"Version: {deb.version()}" in shown.stdout and f"v{deb.version()}" == BUILD_VERSION


@pytest.mark.parametrize("name", deb.SCRIPTS)
def test_its_scripts_are_shell(name: str) -> None:
    subprocess.run(["sh", "-n", deb.SOURCES / name], check=True)


def test_its_life(package: Path, tmp_path: Path) -> None:
    stages = debian_root.run(tmp_path / "overlay", package.parent, LIFE)
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
    assert "coder: /var/lib/coder holds the database and is left; remove it yourself" in stages["removed"]


def test_units_pass_systemd_analyze(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is needed")
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    for name in ("usr/bin/coder", "bin/sh"):
        (tmp_path / name).write_bytes(PROGRAM)
        (tmp_path / name).chmod(0o755)
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
