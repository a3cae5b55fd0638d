"""Names of packages: ours of the earlier name is upgraded in place by apt, and the original's stays untouched.

apt and dpkg run in an overlay of this machine's root, against the repository of `scripts/release`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.kit.paths import ROOT
from tests.kit.programs import debian_root

sys.path.insert(0, str(ROOT / "build"))
import deb
from release import apt
from release.keys import ReleaseKey
from release.plan import Plan

pytestmark = pytest.mark.skipif(shutil.which("apt-get") is None, reason="apt is needed")
EARLIER_SCRIPTS = {
    "prerm": """#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	systemctl disable --now coder.service coder-provisioner.service || true
fi
""",
    "postrm": "#!/bin/sh\nset -e\n[ ! -d /run/systemd/system ] || systemctl daemon-reload || true\n",
}
"""Of our package with the name coder, as released."""
CONTROL = "Package: coder\nVersion: {}\nArchitecture: all\nMaintainer: {}\nDescription: test\n"
SOURCES = """
cp /given/apt/coder-py-archive-keyring.pgp /usr/share/keyrings/
rm -rf /etc/apt/sources.list.d /etc/apt/sources.list /var/lib/apt/lists
mkdir -p /etc/apt/sources.list.d /var/lib/apt/lists/partial
sed 's#^URIs: .*#URIs: file:/given/apt#' /given/apt/coder-py.sources >/etc/apt/sources.list.d/coder-py.sources
apt-get update -qq
install() { apt-get install -y -qq --no-install-recommends coder-py >/root/said 2>&1; }
"""
TAKEOVER = """
dpkg -i /given/earlier.deb >/dev/null
mkdir -p /var/lib/coder/postgres/data /etc/systemd/system/multi-user.target.wants
echo 18 >/var/lib/coder/postgres/data/PG_VERSION
ln -sf /lib/systemd/system/coder.service /etc/systemd/system/multi-user.target.wants/
echo CODER_ACCESS_URL=https://kept.example.com >>/etc/coder.d/coder.env
rm -f /root/told
install
at upgraded
/usr/bin/coder
tail -n1 /etc/coder.d/coder.env
cat /var/lib/coder/postgres/data/PG_VERSION
ls /etc/systemd/system/multi-user.target.wants/coder.service
dpkg-query -W -f '${db:Status-Status} ${Package}\\n' coder coder-py 2>/dev/null || true
dpkg --audit
"""
REFUSAL = """
refused() {
	if "$@"; then echo installed; fi
	rm -f /root/told
	grep '^coder-py:' /root/said
}
directly() { dpkg -i /given/ours.deb >/root/said 2>&1; }
dpkg -i /given/original.deb >/dev/null
mkdir -p /var/lib/coder
echo theirs >/var/lib/coder/data
at over-the-original
refused install
/usr/bin/coder
cat /var/lib/coder/data
dpkg-query -W -f '${db:Status-Status}\\n' coder
dpkg -r coder >/dev/null
at over-its-settings
refused directly
cat /etc/coder.d/coder.env
dpkg -P coder >/dev/null
mkdir -p /var/lib/coder/postgres/data
echo 13 >/var/lib/coder/postgres/data/PG_VERSION
at over-its-database
refused directly
rm -rf /var/lib/coder
at then
directly
if dpkg -i /given/original.deb >/root/said 2>&1; then echo overwritten; fi
grep -o "trying to overwrite.*" /root/said
/usr/bin/coder
"""


def packed(folder: Path, target: Path, control: str, scripts: dict[str, str] | None = None) -> None:
    """Write a package of a folder's files."""
    for name, text in {"control": control, "conffiles": "/etc/coder.d/coder.env\n", **(scripts or {})}.items():
        (folder / "DEBIAN").mkdir(exist_ok=True)
        (folder / "DEBIAN" / name).write_text(text)
        (folder / "DEBIAN" / name).chmod(0o644 if name in {"control", "conffiles"} else 0o755)
    command = ["dpkg-deb", "--root-owner-group", "-b", str(folder), str(target)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """A repository of ours, our earlier package, and one that looks like the original's."""
    given, work = tmp_path / "given", tmp_path / "work"
    given.mkdir()
    work.mkdir()
    for name in ("ours", "earlier", "original"):
        (work / name).write_text(f"#!/bin/sh\necho {name}\n")
    architecture = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True)
    ours = {debian: name for name, debian in deb.DEBIAN_ARCH.items()}[architecture.stdout.strip()]
    deb.build(work / "ours", ours, given / "ours.deb")
    key = ReleaseKey(Ed25519PrivateKey.from_private_bytes(b"\1" * 32))
    apt.build(Plan(deb.version(), "", deb.TIME, key, Path(), given, "https://x.example.com"), [given / "ours.deb"])
    earlier, original = work / "earlier-root", work / "original-root"
    deb.place(work / "earlier", earlier / "usr/bin/coder", 0o755)
    for unit in deb.UNITS:
        deb.place(deb.SOURCES / unit, earlier / "lib/systemd/system" / unit, 0o644)
    deb.place(deb.SOURCES / "coder.env", earlier / "etc/coder.d/coder.env", 0o640)
    packed(earlier, given / "earlier.deb", CONTROL.format("2.34.0", "Coder <coder@localhost>"), EARLIER_SCRIPTS)
    deb.place(work / "original", original / "usr/bin/coder", 0o755)
    deb.write(original / "etc/coder.d/coder.env", b"THEIRS=1\n")
    packed(original, given / "original.deb", CONTROL.format("2.33.1-1", "Coder Technologies <support@example.com>"))
    return given


def test_earlier_package_is_upgraded_in_place(given: Path, tmp_path: Path) -> None:
    stages = debian_root.run(tmp_path / "overlay", given, SOURCES + TAKEOVER)
    told = [line for line in stages["upgraded"] if line.startswith("systemctl")]
    assert "systemctl try-restart coder.service coder-provisioner.service" in told
    assert not [line for line in told if "disable" in line], "the services stay enabled"
    assert stages["upgraded"][len(told) :] == [
        "ours",
        "CODER_ACCESS_URL=https://kept.example.com",
        "18",
        "/etc/systemd/system/multi-user.target.wants/coder.service",
        "not-installed coder",
        "installed coder-py",
    ]


def test_original_package_is_never_replaced(given: Path, tmp_path: Path) -> None:
    stages = debian_root.run(tmp_path / "overlay", given, SOURCES + REFUSAL)
    assert stages["over-the-original"][0].startswith("coder-py: another package named coder is installed; ")
    assert stages["over-the-original"][1:] == ["original", "theirs", "installed"]
    refused = stages["over-its-settings"]
    assert "left its settings in /etc/coder.d" in refused[0] and refused[1:] == ["THEIRS=1"]
    (refusal,) = stages["over-its-database"]
    assert "/var/lib/coder has the database of another program" in refusal
    overwriting, program = stages["then"][-2:]
    assert "which is also in package coder-py" in overwriting and program == "ours"
