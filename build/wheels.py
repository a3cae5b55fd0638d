"""Download of this environment's packages for another processor, as the source of foreign.py.

    python build/wheels.py --target DIR --platform armv7l-manylinux_2_36 [--compile NAME …]

A program is collected from this environment, so the versions are exactly the same. pip's settings set the index.
Packages without a wheel for that processor are listed in --compile: this machine's Python, with the other's
configuration, builds their source with the cross compiler. It uses pip, because uv supports wheels for a few processors
only.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path

import foreign
import libc

OLDEST = 17
"First glibc version (2.17) that wheel tags contain."
CONSTRAINTS = Path(__file__).resolve().parent.parent / "scripts/constraints.txt"
BUILD_WITH = ("setuptools", "setuptools-scm", "wheel", "cffi", "Cython<3")
"""Build backends of our packages' sources."""
TOOLS = ("pip", "setuptools", "uv", "wheel")
"""Packages of an environment, not of a program."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", type=Path, required=True, help="a folder to install to")
    parser.add_argument(
        "--platform", required=True, help="processor-manylinux_2_N, the newest glibc that may be asked for"
    )
    parser.add_argument("--compile", action="append", default=[], help="a package that has no wheel there")
    args = parser.parse_args()
    machine = args.platform.partition("-")[0]
    requested = dict(installed())
    if absent := [name for name in args.compile if name not in requested]:
        raise SystemExit(f"build: to be compiled, and not installed: {', '.join(absent)}")
    with tempfile.TemporaryDirectory(prefix="coder-wheels-") as folder:
        wheels = compiled([f"{name}=={requested.pop(name)}" for name in args.compile], machine, Path(folder))
        shutil.rmtree(args.target, ignore_errors=True)
        tags = [part for tag in tags_of(args.platform) for part in ("--platform", tag)]
        about = ["--target", str(args.target), "--no-compile", "--implementation", "cp", *tags]
        about += ["--python-version", ".".join(platform.python_version_tuple()[:2])]
        listed = [f"{name}=={version}" for name, version in sorted(requested.items())]
        pip(sys.executable, "install", "--no-deps", "--only-binary", ":all:", *about, *listed, *map(str, wheels))
    return 0


def installed() -> Iterator[tuple[str, str]]:
    """Return normalised names and versions."""
    for distribution in distributions():
        name = normal(distribution.metadata["Name"])
        if name not in TOOLS:
            yield name, distribution.version


def normal(name: str) -> str:
    return name.replace("_", "-").replace(".", "-").lower()


def tags_of(wheels: str) -> list[str]:
    """Return the accepted wheel tags of a platform: ours first, then the newest."""
    machine, _, newest = wheels.partition("-manylinux_2_")
    numbered = [f"manylinux_2_{minor}_{machine}" for minor in range(int(newest), OLDEST - 1, -1)]
    return [f"linux_{machine}", *numbered, f"manylinux2014_{machine}"]


def compiled(requirements: list[str], machine: str, work: Path) -> list[Path]:
    """Build wheels for the other processor from sources."""
    if not requirements:
        return []
    print(f"compiling {', '.join(requirements)} for {machine} …", file=sys.stderr)
    # Build backends run here, so they must be for this machine; pip would select those of the target.
    venv.create(work / "tools", with_pip=True)
    python = str(work / "tools/bin/python")
    pip(python, "install", "--upgrade", "-c", str(CONSTRAINTS), *BUILD_WITH)
    options = ["--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--wheel-dir", str(work / "made")]
    pip(python, "wheel", *options, *requirements, env={**os.environ, **cross_environment(machine)})
    return sorted((work / "made").glob("*.whl"))


def cross_environment(machine: str) -> dict[str, str]:
    """Return the environment with additional variables that our packages' builds read."""
    return {
        **foreign.python_environment(machine),
        # Debian's library; this machine's wheel contains it.
        "PYYAML_FORCE_LIBYAML": "1",
        # PyNaCl's own sources of libsodium: Debian's is older than its bindings, and they would not load. configure
        # reads the processor from this variable; the library's tests cannot run here.
        "host_alias": libc.TRIPLES[machine],
        "LIBSODIUM_MAKE_ARGS": "check_PROGRAMS= TESTS=",
    }


def pip(python: str, *arguments: str, env: dict[str, str] | None = None) -> None:
    command = [python, "-m", "pip", "--disable-pip-version-check", "-q", *arguments]
    subprocess.run(command, check=True, env=env)


if __name__ == "__main__":
    raise SystemExit(main())
