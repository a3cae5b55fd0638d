"""An apt repository: pool, package lists and a signed InRelease, in the flat layout of one suite and one component.

Format: https://wiki.debian.org/DebianRepository/Format. apt verifies InRelease with the key ring, the lists with
InRelease, and the packages with the lists.
"""

from __future__ import annotations

import shutil
import subprocess
from email.utils import formatdate
from pathlib import Path

import deb

from release import archive, openpgp
from release.plan import PACKAGE, Plan, digest, write

SUITE, COMPONENT = "stable", "main"
KEYRING = f"{PACKAGE}-archive-keyring.pgp"
USER = "Coder release key <coder@localhost>"
HASHES = {"MD5Sum": "md5", "SHA256": "sha256"}
"""Lists of Release; apt requires SHA256, the other one is for old tools."""
SOURCES = """Types: deb
URIs: {url}/apt
Suites: {suite}
Components: {component}
Architectures: {architectures}
Signed-By: /usr/share/keyrings/{keyring}
"""


def build(plan: Plan, packages: list[Path]) -> Path:
    """Write the repository of some packages to `apt`, and return the folder."""
    root = plan.out / "apt"
    shutil.rmtree(root, ignore_errors=True)
    entries = sorted(pooled(package, root) for package in packages)
    architectures = sorted({architecture for architecture, _ in entries})
    for architecture in architectures:
        text = "\n".join(entry for owner, entry in entries if owner == architecture)
        folder = root / f"dists/{SUITE}/{COMPONENT}/binary-{architecture}"
        write(folder / "Packages", text)
        write(folder / "Packages.gz", archive.compressed(text.encode()))
    signer = openpgp.Signer(plan.key, plan.time)
    release = release_file(root / "dists" / SUITE, architectures, plan.time)
    write(root / f"dists/{SUITE}/Release", release)
    write(root / f"dists/{SUITE}/Release.gpg", openpgp.armored(signer.detached(release.encode()), "SIGNATURE"))
    write(root / f"dists/{SUITE}/InRelease", signer.clearsigned(release))
    write(root / KEYRING, signer.certificate(USER))
    fields = {"url": plan.url, "suite": SUITE, "component": COMPONENT, "keyring": KEYRING}
    write(root / f"{PACKAGE}.sources", SOURCES.format(**fields, architectures=" ".join(architectures)))
    return root


def pooled(package: Path, root: Path) -> tuple[str, str]:
    """Copy a package to the pool and return its processor and its entry in the list."""
    control = subprocess.run(["dpkg-deb", "-f", str(package)], check=True, capture_output=True, text=True).stdout
    fields = dict(line.split(": ", 1) for line in control.splitlines() if not line.startswith(" "))
    architecture = fields["Architecture"]
    name = f"pool/{COMPONENT}/c/{PACKAGE}/{PACKAGE}_{fields['Version']}_{architecture}.deb"
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(package, root / name)
    (root / name).chmod(0o644)
    lines = [f"Filename: {name}", f"Size: {package.stat().st_size}"]
    lines += [
        f"{title}: {digest(package, algorithm)}" for title, algorithm in {"MD5sum": "md5", "SHA256": "sha256"}.items()
    ]
    return architecture, control.rstrip("\n") + "\n" + "\n".join(lines) + "\n"


def release_file(suite: Path, architectures: list[str], time: int) -> str:
    """Return the Release file of a suite's package lists."""
    files = sorted(path for path in suite.rglob("*") if path.is_file())
    fields = {
        "Origin": PACKAGE,
        "Label": PACKAGE,
        "Suite": SUITE,
        "Codename": SUITE,
        "Date": formatdate(time, usegmt=True).replace("GMT", "UTC"),
        "Architectures": " ".join(architectures),
        "Components": COMPONENT,
        "Description": f"Releases of {deb.PACKAGE}",
    }
    lines = [f"{name}: {value}" for name, value in fields.items()]
    for title, algorithm in HASHES.items():
        lines.append(f"{title}:")
        lines += [
            f" {digest(path, algorithm)} {path.stat().st_size} {path.relative_to(suite).as_posix()}" for path in files
        ]
    return "".join(f"{line}\n" for line in lines)
