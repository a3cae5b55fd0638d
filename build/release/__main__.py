"""Make a release: a folder that a person can publish.

    scripts/release --key release-key.pem                          # the version of the tag at HEAD
    scripts/release --key test.pem --dry-run --programs DIR        # of built programs, without a tag
    scripts/release --key release-key.pem --show-key               # the public key to pin and to publish

Without --programs the programs are built first (`build/build.py --platform all`). The folder has programs, packages,
apt repository, wheel, chart, image, manifests, bills of materials, checksums, signatures and provenance. The same
commit and programs give the same bytes. --dry-run permits a release without a tag, with changed files, with an
unpinned key or with programs missing; each of them is printed. Nothing is uploaded.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import deb
import sbom

from coder.base.release.pinned_keys import RELEASE_KEYS
from release import apt, chart, checks, image, keys, managers, notes, openpgp, plan, provenance, rpm, spdx
from release.plan import PACKAGED, PROGRAMS, ROOT, VERSION, Plan

SUMS, SIGNATURE, PUBLIC_KEY = sbom.SUMS, f"{sbom.SUMS}.minisig", "release.pub"
URL = "https://coder.example.com/releases"


def main() -> int:
    args = parse(sys.argv[1:])
    key = keys.load(args.key)
    if args.show_key:
        print(key.public_line)
        return 0
    version = version_of(args.version)
    stage = args.out.with_name(f".{args.out.name}.new")
    tagged = f"v{version}"
    commit = plan.git("rev-parse", "HEAD") or "unknown"
    time = int(os.environ.get("SOURCE_DATE_EPOCH") or plan.git("log", "-1", "--format=%ct") or 0)
    time = max(time, openpgp.CREATED)  # no signature is older than its certificate
    release = Plan(version, commit, time, key, args.key, stage, args.url.rstrip("/"))
    check_target(args.out)
    objections = [*source_objections(tagged), *key_objections(key.public_line)]
    object_to(objections, dry_run=args.dry_run)
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir(parents=True)
    try:
        copy_programs(args.programs or built(args), stage)
        absent = [f"{name} is missing" for name in PROGRAMS if name not in release.programs]
        object_to(absent, dry_run=args.dry_run)
        if not release.programs:
            raise SystemExit("release: there is no program at all; build/build.py --platform all builds them")
        make(release, args)
        if failures := checks.check(release):
            raise SystemExit("release: " + "\n".join(failures))
        finish(stage, args.out)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    print(
        f"{args.out}: release {version}, {sum(path.is_file() for path in args.out.rglob('*'))} files", file=sys.stderr
    )
    return 0


def parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/release", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--key", type=Path, required=True, help="Ed25519 private key (PEM)")
    parser.add_argument("--version", default="", help="a version such as v2.34.0 (default: the tag at HEAD)")
    parser.add_argument("--out", type=Path, default=ROOT / "dist/release", help="the release's folder")
    parser.add_argument("--programs", type=Path, help="folder of built programs (default: build them)")
    parser.add_argument("--url", default=URL, help="where the folder will be published, for manifests")
    parser.add_argument("--wheel", type=Path, help="a built wheel (default: build it)")
    parser.add_argument("--keep-dashboard", action="store_true", help="take dashboard and documentation as they are")
    parser.add_argument(
        "--image", type=Path, action="append", default=[], help="an image's OCI archive (default: bare)"
    )
    parser.add_argument("--dry-run", action="store_true", help="permit what a published release must not be")
    parser.add_argument("--show-key", action="store_true", help="print the public key and exit")
    return parser.parse_args(words)


def version_of(given: str) -> str:
    """Return the version of the release, which is the version in the programs. Raises SystemExit."""
    name = given or plan.git("describe", "--tags", "--exact-match", "HEAD")
    if not name:
        raise SystemExit("release: no tag is at HEAD; create one (git tag v2.34.0), or use --version with --dry-run")
    match = VERSION.fullmatch(name)
    if match is None:
        raise SystemExit(f"release: {name} is not a version such as v2.34.0")
    if match[1] != deb.version():
        raise SystemExit(
            f"release: the programs are version {deb.version()}, not {match[1]}; change coder/base/version.py in the "
            "release's commit, or tag another commit"
        )
    return match[1]


def source_objections(tag: str) -> list[str]:
    """Return why the checkout is not what a tag says."""
    objections = []
    if plan.git("rev-parse", f"refs/tags/{tag}^{{commit}}") != plan.git("rev-parse", "HEAD"):
        objections.append(f"the tag {tag} is not at HEAD")
    if plan.git("status", "--porcelain", "--untracked-files=no"):
        objections.append("the checkout has changes that are not committed")
    return objections


def key_objections(line: str) -> list[str]:
    """Return why users could not verify with their programs."""
    if line in RELEASE_KEYS:
        return []
    return [f"the key is not pinned in the programs: add {line} to coder/base/release/pinned_keys.py"]


def object_to(objections: list[str], *, dry_run: bool) -> None:
    """Raise SystemExit with the objections; a dry run prints them."""
    if objections and not dry_run:
        raise SystemExit("release: " + "\n".join(objections) + "\n--dry-run makes a folder for tests all the same")
    for line in objections:
        print(f"dry run: {line}", file=sys.stderr)


def check_target(out: Path) -> None:
    """Raise SystemExit if the folder has anything but an earlier release."""
    if out.exists() and any(out.iterdir()) and not (out / SIGNATURE).is_file():
        raise SystemExit(f"release: {out} is not empty and not a release; use another --out")


def built(args: argparse.Namespace) -> Path:
    """Build the programs of all platforms and return their folder. What could not be built is missing there."""
    folder = args.out.with_name(f"{args.out.name}-programs")
    command = [sys.executable, str(ROOT / "build/build.py"), "--platform", "all", "--out", str(folder)]
    command += ["--keep-dashboard"] if args.keep_dashboard else []
    subprocess.run(command, check=False)
    return Path(folder)


def copy_programs(source: Path, stage: Path) -> None:
    """Copy the programs with their bills of materials."""
    for name in PROGRAMS:
        for path in (source / name, source / f"{name}.cdx.json"):
            if path.is_file():
                deb.place(path, stage / path.name, 0o755 if path.name == name else 0o644)


def make(release: Plan, args: argparse.Namespace) -> None:
    """Write every part of the release."""
    out = release.out
    packages = []
    for processor in PACKAGED:
        program = release.programs.get(f"coder-linux-{processor}")
        if program is not None:
            packages.append(out / f"{program.name}.deb")
            deb.build(program, processor, packages[-1], time=release.time)
            rpm.build(release, processor)
    if packages:
        apt.build(release, packages)
    for given in args.image:
        deb.place(given, out / given.name, 0o644)
    if not args.image:
        image.build(release)
    wheel(release, args)
    chart.build(release)
    managers.homebrew(release)
    managers.winget(release)
    for bill in sorted(out.glob("*.cdx.json")):
        spdx.build(release, bill)
    plan.write(out / PUBLIC_KEY, release.key.public_file)
    notes.build(release, allow_unreleased=args.dry_run)
    provenance.build(release, [path for path in out.rglob("*") if path.is_file()])
    files = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    sums = "".join(f"{plan.digest(out / name)}  {name}\n" for name in files)
    plan.write(out / SUMS, sums)
    plan.write(out / SIGNATURE, release.key.minisign(sums.encode(), f"{plan.PACKAGE} {release.version}"))


def wheel(release: Plan, args: argparse.Namespace) -> None:
    """Build the wheel, or copy the one that --wheel names."""
    if args.wheel:
        deb.place(args.wheel, release.out / args.wheel.name, 0o644)
        return
    if not args.keep_dashboard:
        for command in (["dashboard"], ["docs", "--pack"]):
            subprocess.run([ROOT / "scripts" / command[0], *command[1:]], check=True)
    env = {**os.environ, "SOURCE_DATE_EPOCH": str(release.time)}
    with tempfile.TemporaryDirectory(prefix="coder-wheel-") as folder:
        # The installed hatchling, which is pinned; pip would fetch the newest, whose version the wheel names.
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        subprocess.run(command, check=True, env=env, cwd=ROOT, capture_output=True)
        (made,) = Path(folder).glob("*.whl")
        deb.place(made, release.out / made.name, 0o644)


def finish(stage: Path, out: Path) -> None:
    """Put the finished folder in the place of an earlier one."""
    earlier = out.with_name(f".{out.name}.old")
    shutil.rmtree(earlier, ignore_errors=True)
    if out.exists():
        out.rename(earlier)
    stage.rename(out)
    shutil.rmtree(earlier, ignore_errors=True)


if __name__ == "__main__":
    raise SystemExit(main())
