"""RPM packages of the programs, made by Debian's rpmbuild, which also builds for other processors.

The same input gives the same bytes: rpmbuild takes time and host name from macros, and every path of the build is
outside of the package. rpmsign runs openpgp.py instead of gpg.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import deb

from release.plan import LICENSE, PACKAGE, ROOT, SUMMARY, Plan

PROCESSORS = {"amd64": "x86_64", "arm64": "aarch64"}
UNIT_FOLDER = "usr/lib/systemd/system"
SPEC = """Name: {package}
Version: {version}
Release: 1
Summary: {summary}
License: {license}
Requires(pre): shadow-utils
Recommends: ca-certificates
Recommends: git
Recommends: openssh-clients
Conflicts: coder
%description
Server, provisioner daemon, workspace agent and command line in one program.
The server is started with: systemctl enable --now coder
%pre
if [ "$(cat /var/lib/coder/postgres/data/PG_VERSION 2>/dev/null)" = 13 ]; then
    echo "{package}: /var/lib/coder has the database of another program. Nothing was changed; move it away first." >&2
    exit 1
fi
getent passwd coder >/dev/null ||
    useradd --system --home-dir /var/lib/coder --shell /sbin/nologin --user-group coder
%post
[ ! -d /run/systemd/system ] || systemctl daemon-reload || :
%preun
[ "$1" != 0 ] || [ ! -d /run/systemd/system ] || systemctl disable --now coder.service coder-provisioner.service || :
%postun
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || :
    [ "$1" = 0 ] || systemctl try-restart coder.service coder-provisioner.service || :
fi
%files
/usr/bin/coder
{units}
%dir /etc/coder.d
%config(noreplace) %attr(0640, root, root) /etc/coder.d/coder.env
"""
MACROS = {
    "_buildhost": "reproducible",
    "use_source_date_epoch_as_buildtime": "1",
    "clamp_mtime_to_source_date_epoch": "1",
    "source_date_epoch_from_changelog": "0",
    "_build_id_links": "none",
    "__os_install_post": "%{nil}",
    "__brp_mangle_shebangs": "%{nil}",
    "debug_package": "%{nil}",
    "__requires_exclude": ".*",  # the program brings its libraries
    "__provides_exclude": ".*",
    "_binary_payload": "w.ufdio",  # the program is already compressed
    "_build_name_fmt": "%%{NAME}.%%{ARCH}.rpm",
}


def build(plan: Plan, processor: str) -> Path:
    """Write `coder-linux-<processor>.rpm`, signed with the release's key, and return its path."""
    program = plan.out / f"coder-linux-{processor}"
    target = plan.out / f"{program.name}.rpm"
    architecture = PROCESSORS[processor]
    with tempfile.TemporaryDirectory(prefix="coder-rpm-") as name:
        work = Path(name)
        root, made = work / "root", work / "made"
        lay_out(program, root, plan.time)
        spec = work / f"{PACKAGE}.spec"
        units = "\n".join(f"/{UNIT_FOLDER}/{unit}" for unit in deb.UNITS)
        fields = {"package": PACKAGE, "version": plan.version, "summary": SUMMARY, "license": LICENSE, "units": units}
        spec.write_text(SPEC.format(**fields))
        macros = {**MACROS, "_topdir": str(work / "top"), "_rpmdir": str(made), "_tmppath": str(work / "tmp")}
        defined = [word for key, value in macros.items() for word in ("--define", f"{key} {value}")]
        command = ["rpmbuild", "-bb", "--quiet", "--target", f"{architecture}-linux", "--buildroot", str(root)]
        # rpmbuild empties the build root before an install section; --short-circuit would leave a mark in the package.
        spec.write_text(spec.read_text() + f"%install\ncp -a {work}/kept/. %{{buildroot}}/\n")
        root.rename(work / "kept")
        run([*command, *defined, str(spec)], plan.time, home=work)
        shutil.move(made / f"{PACKAGE}.{architecture}.rpm", target)
        sign(plan, target, work)
    return target


def lay_out(program: Path, root: Path, time: int) -> None:
    """Copy the package's files to their paths below a folder."""
    deb.place(program, root / "usr/bin/coder", 0o755)
    for unit in deb.UNITS:
        deb.place(deb.SOURCES / unit, root / UNIT_FOLDER / unit, 0o644)
    deb.place(deb.SOURCES / "coder.env", root / "etc/coder.d/coder.env", 0o640)
    for path in root.rglob("*"):
        if path.is_dir():
            path.chmod(0o755)
        os.utime(path, (time, time))


def sign(plan: Plan, package: Path, work: Path) -> None:
    """Sign a package."""
    # rpmsign runs the first word with the others as its arguments, from argv[0] on.
    words = [sys.executable, sys.executable, "-m", "release.openpgp", str(plan.key_path.resolve()), str(plan.time)]
    call = " ".join([*words, "%{__signature_filename}", "%{__plaintext_filename}"])
    defined = ["--define", f"__gpg_sign_cmd {call}", "--define", "_gpg_name release"]
    run(["rpmsign", "--addsign", *defined, str(package)], plan.time, home=work)


def run(command: list[str], time: int, *, home: Path) -> None:
    """Run a program of rpm. Raises SystemExit with its output."""
    env = {**os.environ, "SOURCE_DATE_EPOCH": str(time), "HOME": str(home), "PYTHONPATH": str(ROOT / "build")}
    if shutil.which(command[0]) is None:
        raise SystemExit(f"release: {command[0]} not found; on Debian: apt-get install rpm")
    done = subprocess.run(command, check=False, capture_output=True, text=True, env={**env, "LC_ALL": "C"})
    if done.returncode:
        raise SystemExit(f"release: {command[0]} failed: {done.stdout}{done.stderr}")
