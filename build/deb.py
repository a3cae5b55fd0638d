"""Build a Debian package of a program: the file, systemd units, a user. The same input gives the same bytes.

    python build/deb.py PROGRAM [--arch amd64] [--out coder-linux-amd64.deb]

Requires dpkg-deb. `/install.sh` finds the package under that name in a server's `bin` folder.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "build/debian"
DEBIAN_ARCH = {"amd64": "amd64", "arm64": "arm64", "armv7": "armhf"}
UNITS = ("coder.service", "coder-provisioner.service", "coder-agent@.service")
CONTROL = """Package: coder
Version: {version}
Architecture: {arch}
Maintainer: Coder <coder@localhost>
Installed-Size: {size}
Depends: passwd
Recommends: ca-certificates, git, openssh-client
Suggests: terraform, postgresql
Section: admin
Priority: optional
Description: self-hosted remote development
 Server, provisioner daemon, workspace agent and command line in one program.
 The server is started with: systemctl enable --now coder
"""


def version() -> str:
    values: dict[str, str] = {}
    exec((ROOT / "coder/base/version.py").read_text(), values)  # noqa: S102 - our own three lines
    return values["__version__"]


def build(program: Path, arch: str, target: Path) -> None:
    """Write the package to a temporary file and rename it."""
    with tempfile.TemporaryDirectory(prefix="coder-deb-") as name:
        root = Path(name)
        place(program, root / "usr/bin/coder", 0o755)
        for unit in UNITS:
            place(SOURCES / unit, root / "lib/systemd/system" / unit, 0o644)
        place(SOURCES / "coder.env", root / "etc/coder.d/coder.env", 0o640)
        for script in ("postinst", "prerm", "postrm"):
            place(SOURCES / script, root / "DEBIAN" / script, 0o755)
        size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024 + 1
        (root / "DEBIAN/control").write_text(CONTROL.format(version=version(), arch=DEBIAN_ARCH[arch], size=size))
        (root / "DEBIAN/conffiles").write_text("/etc/coder.d/coder.env\n")
        for path in [root, *root.rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)
        (root / "DEBIAN/control").chmod(0o644)
        (root / "DEBIAN/conffiles").chmod(0o644)
        partial = target.with_name(f".{target.name}.new")
        # The program is already compressed.
        command = ["dpkg-deb", "--root-owner-group", "-Znone", "--build", str(root), str(partial)]
        env = {**os.environ, "SOURCE_DATE_EPOCH": "315532800"}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)
        partial.replace(target)


def place(source: Path, target: Path, mode: int) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(mode)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--arch", default="amd64", choices=tuple(DEBIAN_ARCH))
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    target = args.out or args.program.parent / f"coder-linux-{args.arch}.deb"
    build(args.program, args.arch, target)
    print(f"{target} ({target.stat().st_size / 1e6:.1f} MB)", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
