"""Build a Debian package of a program: the file, systemd units, a user. The same input gives the same bytes.

    python build/deb.py PROGRAM [--arch amd64] [--out coder-linux-amd64.deb]

Requires dpkg-deb. `/install.sh` finds the package under that name in a server's `bin` folder.

The package's name is coder-py, because `coder` is the original's. Our package 2.34.0 was named `coder`, too:
this one replaces all their files, so that dpkg lets them disappear without running their prerm script, and services
stay enabled and running. `preinst` refuses to install over the original (docs/decisions/release.md).
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
from email.utils import formatdate
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "build/debian"
TIME = 315532800
"Time of the files unless a release sets its own."
DEBIAN_ARCH = {"amd64": "amd64", "arm64": "arm64", "armv7": "armhf"}
SCRIPTS = ("preinst", "postinst", "prerm", "postrm")
UNITS = ("coder.service", "coder-provisioner.service", "coder-agent@.service")
PACKAGE = "coder-py"
EARLIER = "2.34.0"
"The only version of our packages with the name `coder`; the original's have a revision: 2.34.0-1."
CONTROL = """Package: coder-py
Version: {version}
Architecture: {arch}
Maintainer: Coder <coder@localhost>
Installed-Size: {size}
Depends: passwd
Replaces: coder (= {earlier})
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


def build(program: Path, arch: str, target: Path, *, time: int = TIME) -> None:
    """Write the package to a temporary file and rename it. `time` is the time of its files, in seconds since 1970."""
    with tempfile.TemporaryDirectory(prefix="coder-deb-") as name:
        root = Path(name)
        place(program, root / "usr/bin/coder", 0o755)
        for unit in UNITS:
            place(SOURCES / unit, root / "lib/systemd/system" / unit, 0o644)
        place(SOURCES / "coder.env", root / "etc/coder.d/coder.env", 0o640)
        place(SOURCES / "copyright", root / f"usr/share/doc/{PACKAGE}/copyright", 0o644)
        write(root / f"usr/share/doc/{PACKAGE}/changelog.gz", changelog(time))
        for script in SCRIPTS:
            place(SOURCES / script, root / "DEBIAN" / script, 0o755)
        size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024 + 1
        fields = {"version": version(), "arch": DEBIAN_ARCH[arch], "size": size, "earlier": EARLIER}
        write(root / "DEBIAN/control", CONTROL.format(**fields).encode())
        write(root / "DEBIAN/conffiles", b"/etc/coder.d/coder.env\n")
        for path in [root, *root.rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)
            os.utime(path, (time, time))
        partial = target.with_name(f".{target.name}.new")
        # The program is already compressed.
        command = ["dpkg-deb", "--root-owner-group", "-Znone", "--build", str(root), str(partial)]
        env = {**os.environ, "SOURCE_DATE_EPOCH": str(time)}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)
        partial.replace(target)


def changelog(time: int) -> bytes:
    """Return Debian's changelog, which names the version only: CHANGELOG.md has the changes."""
    text = f"{PACKAGE} ({version()}) stable; urgency=medium\n\n  * See the release notes.\n\n"
    text += f" -- Coder <coder@localhost>  {formatdate(time, usegmt=True).replace('GMT', '+0000')}\n"
    return gzip.compress(text.encode(), 9, mtime=0)


def write(target: Path, data: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    target.chmod(0o644)


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
