"""Verification of a finished release with the programs that its users have. A program that is not installed is named;
what it would have checked stays unchecked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from coder.base.errors import CoderError
from coder.base.release.signature import SUMS, parse_public_key, verify_file
from release import openpgp
from release.apt import KEYRING, SUITE, USER
from release.plan import Plan

Command = list[str]


def check(plan: Plan) -> list[str]:
    """Return the failures; print what was checked and with what."""
    failures = []
    try:
        keys = [parse_public_key(plan.key.public_line)]
        for path in sorted(plan.out.rglob("*")):
            if path.is_file() and path.parent == plan.out and not path.name.startswith(SUMS):
                verify_file(path, keys)
    except CoderError as error:
        failures.append(str(error))
    with tempfile.TemporaryDirectory(prefix="coder-release-") as scratch:
        for name, command in commands(plan, Path(scratch)):
            if shutil.which(command[0]) is None:
                print(f"not checked: {name} ({command[0]} is not installed)", file=sys.stderr)
                continue
            env = {**os.environ, "GNUPGHOME": scratch, "LC_ALL": "C"}
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
            if done.returncode:
                failures.append(f"{name}: {command[0]}: {(done.stderr or done.stdout).strip()}")
            else:
                print(f"checked: {name} ({command[0]})", file=sys.stderr)
    return failures


def commands(plan: Plan, scratch: Path) -> Iterator[tuple[str, Command]]:
    """Yield what is checked and the command that checks it."""
    out = plan.out
    yield "checksums", ["sh", "-c", 'cd "$0" && sha256sum --quiet -c SHA256SUMS', str(out)]
    yield "signature of the checksums", ["minisign", "-Vqm", str(out / SUMS), "-P", plan.key.public_line]
    suite, keyring = out / "apt/dists" / SUITE, ["--keyring", str(out / "apt" / KEYRING)]
    if suite.exists():
        yield "InRelease", ["gpgv", *keyring, str(suite / "InRelease")]
        yield "Release.gpg", ["gpgv", *keyring, str(suite / "Release.gpg"), str(suite / "Release")]
    for package in sorted(out.glob("*.deb")):
        yield package.name, ["dpkg-deb", "--contents", str(package)]
    database = scratch / "rpm"
    certificate = openpgp.Signer(plan.key, plan.time).certificate(USER)
    (scratch / "key.asc").write_text(openpgp.armored(certificate, "PUBLIC KEY BLOCK"))
    if packages := sorted(out.glob("*.rpm")):
        yield "key in rpm", ["rpm", "--dbpath", str(database), "--import", str(scratch / "key.asc")]
    for package in packages:
        yield package.name, ["rpm", "--dbpath", str(database), "--define", "_pkgverify_level all", "-K", str(package)]
    for formula in sorted(out.glob("homebrew/*.rb")):
        yield formula.name, ["ruby", "-c", str(formula)]
    for chart in sorted(out.glob("coder-*.tgz")):
        yield chart.name, [os.environ.get("CODER_HELM", "helm"), "lint", "--quiet", str(chart)]
    for image in sorted(out.glob("coder-image-*.tar")):
        command = ["--override-arch", "amd64", "inspect", f"oci-archive:{image}"]
        yield image.name, ["skopeo", *command]
