"""`scripts/release`: two checkouts in two folders give the same bytes, and every part is what its reader expects.

The programs are small scripts here; tests/build/test_reproducible.py builds the real ones twice, with `--soak`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from coder.base.release.signature import parse_public_key, verify_file
from tests.kit.paths import ROOT

sys.path.insert(0, str(ROOT / "build"))
import deb
import sbom
from release import __main__ as command
from release import notes, provenance
from release.keys import ReleaseKey
from release.plan import PROGRAMS

TOOLS = ("dpkg-deb", "rpmbuild", "rpmsign")
pytestmark = pytest.mark.skipif(
    not all(shutil.which(tool) for tool in TOOLS), reason=f"{', '.join(TOOLS)} are needed (Debian: dpkg rpm)"
)
KEY = ReleaseKey(Ed25519PrivateKey.from_private_bytes(b"\1" * 32))
PEM = KEY.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
URL = "https://releases.example.com"
PARTS = ("coder", "build", "scripts", "docs/guides", "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE")
OUTSIDE = (
    {"TZ": "Asia/Tokyo", "LC_ALL": "C", "HOME": "/nonexistent"},
    {"TZ": "UTC", "LC_ALL": "C.UTF-8", "HOME": "/root"},
)
"""Environments of the two builds; so are umask, path and times of files."""
VERSION = deb.version()


def copy_checkout(target: Path, umask: int) -> None:
    """Copy the sources with the times and modes of another clone. The programs' bulk stays out."""
    ignored = shutil.ignore_patterns("node_modules", "__pycache__", "dist", "src", "recorded", "*.jpg")
    before = os.umask(umask)
    try:
        for part in PARTS:
            source = ROOT / part
            if source.is_dir():
                shutil.copytree(source, target / part, ignore=ignored, copy_function=shutil.copyfile)
            else:
                (target / part).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target / part)
    finally:
        os.umask(before)


def write_programs(folder: Path) -> None:
    folder.mkdir()
    openssl = sbom.component_of("library", "openssl", "3.5.5", "pkg:generic/openssl@3.5.5")
    for name in PROGRAMS:
        (folder / name).write_text(f"#!/bin/sh\necho {name}\n")
        sbom.write(folder / f"{name}.cdx.json", sbom.document(name, VERSION, [openssl, sbom.python_itself()]))


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The same release, made in two folders."""
    made = []
    for number, environment in enumerate(OUTSIDE):
        folder = tmp_path_factory.mktemp("a" * (number * 40 + 1))
        umask = (0o022, 0o077)[number]
        copy_checkout(folder / "checkout", umask)
        write_programs(folder / "programs")
        (folder / "key.pem").write_bytes(PEM)
        words: list[str | Path] = [
            "--key",
            folder / "key.pem",
            "--programs",
            folder / "programs",
            "--out",
            folder / "out",
        ]
        words += ["--version", f"v{VERSION}", "--url", URL, "--dry-run", "--keep-dashboard"]
        env = {**os.environ, **environment, "PYTHONPATH": f"{folder / 'checkout'}:{folder / 'checkout/build'}"}
        done = subprocess.run(
            [sys.executable, "-m", "release", *words], env=env, umask=umask, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        made.append(folder / "out")
    return made


@pytest.fixture
def out(releases: list[Path]) -> Path:
    return releases[0]


def test_two_folders_give_the_same_bytes(releases: list[Path]) -> None:
    first, second = ({path.relative_to(out).as_posix(): path for path in files(out)} for out in releases)
    assert first.keys() == second.keys()
    assert not [name for name in first if first[name].read_bytes() != second[name].read_bytes()]


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_release_has_every_part(out: Path) -> None:
    names = {path.relative_to(out).as_posix() for path in files(out)}
    parts = {f"coder-linux-{processor}.{kind}" for processor in ("amd64", "arm64") for kind in ("deb", "rpm")}
    parts |= {f"{name}{suffix}" for name in PROGRAMS for suffix in ("", ".cdx.json", ".spdx.json")}
    parts |= {f"coder-{VERSION}-py3-none-any.whl", f"coder-{VERSION}.tgz", f"coder-image-{VERSION}.tar"}
    parts |= {"apt/dists/stable/InRelease", "homebrew/coder-py.rb", "RELEASE_NOTES.md", "release.pub"}
    parts |= {"SHA256SUMS", "SHA256SUMS.minisig", "provenance.intoto.jsonl"}
    assert not parts - names


def test_coder_verify_accepts_every_file(out: Path) -> None:
    keys = [parse_public_key((out / "release.pub").read_text())]
    unsigned = {"SHA256SUMS", "SHA256SUMS.minisig"}
    for path in files(out):
        if path.name not in unsigned:
            assert verify_file(path, keys).trusted_comment == f"coder-py {VERSION}", path


def test_spdx_documents_are_consistent(out: Path) -> None:
    """What pyspdxtools rejects: repeated or unresolved ids, a fragment in the namespace, a missing licence field."""
    for path in out.glob("*.spdx.json"):
        document = json.loads(path.read_text())
        ids = [package["SPDXID"] for package in document["packages"]]
        assert len(set(ids)) == len(ids) and "#" not in document["documentNamespace"]
        assert all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", each) for each in ids)
        ends = {each[key] for each in document["relationships"] for key in ("spdxElementId", "relatedSpdxElement")}
        assert ends == {"SPDXRef-DOCUMENT", *ids}
        versions = {package["name"]: package["versionInfo"] for package in document["packages"]}
        assert versions["openssl"] == "3.5.5" and all("licenseDeclared" in package for package in document["packages"])


def test_provenance_is_signed_and_complete(out: Path) -> None:
    envelope = json.loads((out / "provenance.intoto.jsonl").read_text())
    payload = base64.b64decode(envelope["payload"])
    (signature,) = envelope["signatures"]
    KEY.private.public_key().verify(base64.b64decode(signature["sig"]), provenance.encoded(payload))
    statement = json.loads(payload)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://slsa.dev/provenance/v1"
    subjects = {item["name"]: item["digest"]["sha256"] for item in statement["subject"]}
    later = {"SHA256SUMS", "SHA256SUMS.minisig", "provenance.intoto.jsonl"}
    assert subjects == {
        name: digest(path) for path in files(out) if (name := path.relative_to(out).as_posix()) not in later
    }


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_image_layout_resolves(out: Path) -> None:
    with tarfile.open(out / f"coder-image-{VERSION}.tar") as tar:
        blobs = {member.name: tar.extractfile(member) for member in tar if member.isfile()}
        contents = {name: file.read() for name, file in blobs.items() if file}

    def blob(reference: dict[str, Any]) -> bytes:
        data = contents["blobs/" + reference["digest"].replace(":", "/")]
        assert len(data) == reference["size"] and f"sha256:{hashlib.sha256(data).hexdigest()}" == reference["digest"]
        return data

    (index,) = json.loads(contents["index.json"])["manifests"]
    manifests = json.loads(blob(index))["manifests"]
    assert [each["platform"]["architecture"] for each in manifests] == ["amd64", "arm64"]
    for each in manifests:
        manifest = json.loads(blob(each))
        (layer,) = manifest["layers"]
        config = json.loads(blob(manifest["config"]))
        blob(layer)
        assert config["rootfs"]["diff_ids"] == [layer["digest"]] and config["config"]["User"] == "1000:1000"
        dockerfile = (ROOT / "build/docker/Dockerfile").read_text()
        assert all(line in dockerfile for line in config["config"]["Env"]), "settings differ from the Dockerfile's"


def test_manifests_name_released_hashes(out: Path) -> None:
    sums = {path.name: digest(path) for path in out.iterdir() if path.is_file()}
    formula = (out / "homebrew/coder-py.rb").read_text()
    pairs = dict(re.findall(rf'url "{URL}/(\S+)"\s+sha256 "(\w+)"', formula))
    assert len(pairs) == 4 and all(sums[name] == value for name, value in pairs.items())
    folder = out / f"winget/c/CoderPy/Coder/{VERSION}"
    documents = {path.name: yaml.safe_load(path.read_text()) for path in folder.iterdir()}
    common = {"PackageIdentifier", "PackageVersion", "ManifestType", "ManifestVersion"}
    assert {document["ManifestType"] for document in documents.values()} == {"version", "installer", "defaultLocale"}
    assert all(common <= document.keys() for document in documents.values())
    installers = documents["CoderPy.Coder.installer.yaml"]["Installers"]
    assert {each["Architecture"] for each in installers} == {"x64", "arm64"}
    assert {each["InstallerSha256"].lower() for each in installers} == {sums["coder-windows-amd64.exe"]}
    required = {"Publisher", "PackageName", "License", "ShortDescription", "PackageLocale"}
    assert required <= documents["CoderPy.Coder.locale.en-US.yaml"].keys()


@pytest.mark.parametrize("processor", ["amd64", "arm64"])
def test_rpm_has_the_same_files_as_deb(processor: str, out: Path) -> None:
    package = out / f"coder-linux-{processor}.rpm"
    query = "[%{FILENAMES} %{FILEMODES:perms}\n]%{ARCH} %{BUILDHOST}\n[%{CONFLICTNAME}\n]"
    shown = subprocess.run(
        ["rpm", "-qp", "--nosignature", "--qf", query, package], capture_output=True, text=True, check=True
    )
    lines = shown.stdout.splitlines()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}[processor]
    units = [f"/usr/lib/systemd/system/{unit} -rw-r--r--" for unit in deb.UNITS]
    expected = ["/etc/coder.d drwxr-xr-x", "/etc/coder.d/coder.env -rw-r-----", "/usr/bin/coder -rwxr-xr-x", *units]
    assert sorted(lines[:-2]) == sorted(expected)
    assert lines[-2:] == [f"{machine} reproducible", "coder"], "dnf refuses to install over the original"


@pytest.mark.skipif(shutil.which("gpgv") is None, reason="gpgv is not installed")
@pytest.mark.parametrize("change", [False, True], ids=["genuine", "changed"])
def test_gpgv_verifies_repository(change: bool, out: Path, tmp_path: Path) -> None:
    text = (out / "apt/dists/stable/InRelease").read_text()
    (tmp_path / "InRelease").write_text(text.replace("Suite: stable", "Suite: other") if change else text)
    keyring = out / "apt/coder-py-archive-keyring.pgp"
    command = ["gpgv", "--homedir", str(tmp_path), "--keyring", str(keyring), str(tmp_path / "InRelease")]
    assert bool(subprocess.run(command, capture_output=True, check=False).returncode) is change


def test_package_lists_match_the_pool(out: Path) -> None:
    for package in out.glob("coder-linux-*.deb"):
        architecture = package.stem.rpartition("-")[2]
        text = (out / f"apt/dists/stable/main/binary-{architecture}/Packages").read_text()
        fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line and not line.startswith(" "))
        assert fields["Package"] == "coder-py" and fields["SHA256"] == digest(package) == digest(
            out / "apt" / fields["Filename"]
        )


def test_chart_has_the_releases_version(out: Path) -> None:
    with tarfile.open(out / f"coder-{VERSION}.tgz") as tar:
        file = tar.extractfile("coder/Chart.yaml")
        assert file is not None
        chart = yaml.safe_load(file.read())
        names = {name.removeprefix("coder/") for name in tar.getnames()}
    assert chart["version"] == chart["appVersion"] == VERSION
    chart_folder = ROOT / "build/helm"
    assert names == {path.relative_to(chart_folder).as_posix() for path in files(chart_folder)}


def test_wheel_is_complete(out: Path) -> None:
    with zipfile.ZipFile(out / f"coder-{VERSION}-py3-none-any.whl") as wheel:
        assert {"coder/base/release/pinned_keys.py", "coder/__main__.py"} <= set(wheel.namelist())


def test_notes_are_the_changelogs_section(out: Path) -> None:
    text = (out / "RELEASE_NOTES.md").read_text()
    assert notes.section((ROOT / "CHANGELOG.md").read_text(), VERSION) in text and KEY.public_line in text


@pytest.mark.parametrize(
    ("changelog", "expected"),
    [
        ("# C\n\n## Unreleased\nnew\n\n## 2.0.0 (2026-01-01)\n### Fixed\n- one\n\n## 1.0.0\nold\n", "### Fixed\n- one"),
        ("## v2.0.0\ntext\n", "text"),
        ("## 2.0.0-rc1\ntext\n", ""),
    ],
)
def test_changelog_section_by_version(changelog: str, expected: str) -> None:
    assert notes.section(changelog, "2.0.0") == expected


def run_main(monkeypatch: pytest.MonkeyPatch, *words: str | Path) -> None:
    monkeypatch.setattr(sys, "argv", ["release", *map(str, words)])
    command.main()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--version", "v9.9.9"], "the programs are version"),
        (["--version", "latest"], "is not a version such as"),
        (["--version", f"v{VERSION}"], "the key is not pinned in the programs"),
        (["--version", f"v{VERSION}", "--dry-run"], "there is no program at all"),
    ],
)
def test_release_refuses(words: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key.pem").write_bytes(PEM)
    (tmp_path / "empty").mkdir()
    folders: list[str | Path] = [
        "--key",
        tmp_path / "key.pem",
        "--programs",
        tmp_path / "empty",
        "--out",
        tmp_path / "out",
    ]
    with pytest.raises(SystemExit, match=text):
        run_main(monkeypatch, *folders, *words)
    assert not (tmp_path / "out").exists()


def test_other_folder_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key.pem").write_bytes(PEM)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/precious").touch()
    with pytest.raises(SystemExit, match="is not empty and not a release"):
        run_main(monkeypatch, "--key", tmp_path / "key.pem", "--version", f"v{VERSION}", "--out", tmp_path / "out")
    assert (tmp_path / "out/precious").exists()


@pytest.mark.parametrize(
    "content", [b"", b"not a key", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]
)
def test_unusable_key_is_named(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key.pem").write_bytes(content)
    with pytest.raises(SystemExit, match="is not a readable private key"):
        run_main(monkeypatch, "--key", tmp_path / "key.pem", "--show-key")
