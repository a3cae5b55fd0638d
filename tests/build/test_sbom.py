"""Bills of materials: true to what was collected, valid by CycloneDX's own schema, the same each time."""

from __future__ import annotations

import hashlib
import json
import platform
import ssl
import subprocess
import sys
from importlib import resources
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build"))
import modules
import sbom


@pytest.fixture
def collected(tmp_path: Path) -> Path:
    """A folder as build.py leaves it: trio and cryptography are in, pytest is not."""
    internal = tmp_path / "coder/_internal"
    (internal / "cryptography/hazmat/bindings").mkdir(parents=True)
    found = dict.fromkeys(("coder.base", "trio._core._run", "json.decoder"), (modules.MODULE, b""))
    (internal / "modules.bin").write_bytes(modules.packed(found))
    (internal / "cryptography/hazmat/bindings/_rust.abi3.so").write_bytes(b"\x7fELF")
    (internal / "libssl.so.3").write_bytes(b"tls")
    return tmp_path / "coder"


def names(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {part["name"]: part for part in document["components"]}


def test_sbom_lists_only_collected_libraries(collected: Path) -> None:
    found = names(sbom.describe(collected, "coder-linux-amd64", "1.2.3", dashboard=False))
    assert {"python", "trio", "cryptography", "libssl.so.3"} <= found.keys()
    assert not {"coder", "pytest", "mypy", "sqlalchemy", "react"} & {name.lower() for name in found}
    assert found["trio"]["purl"] == f"pkg:pypi/trio@{distribution('trio').version}"
    assert found["libssl.so.3"]["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(b"tls").hexdigest()}]


@pytest.mark.parametrize("known", [("", ""), ("another", "1.0.2-3")])
def test_bundled_libraries_have_versions(
    known: tuple[str, str], collected: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the root for amd64 OpenSSL and Python are compiled from source: dpkg knows neither, or others of the name."""
    ours = ("libssl", "libcrypto", "libpython")
    monkeypatch.setattr(sbom, "debian_package", lambda name: known if name.startswith(ours) else ("", ""))
    python = f"libpython{sys.version_info.major}.{sys.version_info.minor}.so.1.0"
    for name in ("libcrypto.so.3", python, "libstrange.so.1"):
        (collected / "_internal" / name).write_bytes(b"\x7fELF")
    found = names(sbom.describe(collected, "coder", "1", dashboard=False))
    openssl = ssl.OPENSSL_VERSION_INFO
    for name in ("libssl.so.3", "libcrypto.so.3"):
        assert found[name]["purl"].startswith(f"pkg:generic/openssl@{openssl[0]}.{openssl[1]}."), found[name]
        assert found[name]["version"] == found[name]["purl"].rpartition("@")[2]
    assert found[python]["purl"] == f"pkg:generic/python@{platform.python_version()}"
    assert found["libstrange.so.1"]["version"] == "unknown" and not found["libstrange.so.1"].get("purl")


def test_system_libraries_are_debian_packages(collected: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = f"{ssl.OPENSSL_VERSION.split()[1]}-1"
    monkeypatch.setattr(sbom, "debian_package", lambda _: ("libssl3", version))
    found = names(sbom.describe(collected, "coder", "1", dashboard=False))
    assert found["libssl.so.3"]["purl"] == f"pkg:deb/debian/libssl3@{version}"


def test_openssl_inside_modules_is_listed(collected: Path) -> None:
    """Wheels of cryptography contain an OpenSSL of their own, of another version than the interpreter's."""
    module = "cryptography/hazmat/bindings/_rust.abi3.so"
    (collected / "_internal" / module).write_bytes(b"\x7fELF\0OpenSSL 4.0.3 29 Sep 2026\0OpenSSL 3's legacy\0")
    (part,) = [part for part in sbom.linked_openssl(collected) if part["name"] == "openssl"]
    assert part["purl"] == "pkg:generic/openssl@4.0.3" and part["bom-ref"] == f"file:{module}#openssl-4.0.3"
    assert part in sbom.describe(collected, "coder", "1", dashboard=False)["components"]


def test_dashboard_build_tools_are_excluded(collected: Path) -> None:
    found = names(sbom.describe(collected, "coder", "1.2.3", dashboard=True))
    assert found["react"]["purl"].startswith("pkg:npm/react@")
    assert not {"typescript", "vite", "vitest", "eslint"} & found.keys()
    assert found["@iconify-json/twemoji"]["licenses"] == [{"expression": "CC-BY-4.0"}]
    scoped = [part["purl"] for part in found.values() if part["name"].startswith("@")]
    assert scoped and all(purl.startswith("pkg:npm/%40") for purl in scoped)


def test_sbom_is_reproducible(collected: Path) -> None:
    one, two = (sbom.describe(collected, "coder", "1", dashboard=True) for _ in range(2))
    assert json.dumps(one) == json.dumps(two)
    (collected / "_internal/libssl.so.3").write_bytes(b"other")
    other = sbom.describe(collected, "coder", "1", dashboard=True)
    assert other["serialNumber"] != one["serialNumber"]


def test_sbom_matches_cyclonedx_schema(collected: Path) -> None:
    pytest.importorskip("cyclonedx")
    place = resources.files("cyclonedx.schema") / "_res"
    schemas = {
        name: json.loads((place / f"{name}.SNAPSHOT.schema.json").read_text())
        for name in ("bom-1.5", "spdx", "jsf-0.82")
    }
    registry: Registry[Any] = Registry().with_resources(
        (f"http://cyclonedx.org/schema/{name}.SNAPSHOT.schema.json", Resource.from_contents(schema))
        for name, schema in schemas.items()
    )
    document = sbom.describe(collected, "coder", "1", dashboard=True)
    jsonschema.Draft7Validator(schemas["bom-1.5"], registry=registry).validate(document)
    references = [part["bom-ref"] for part in document["components"]]
    assert len(references) == len(set(references)) and document["dependencies"][0]["dependsOn"] == references


def test_sha256sum_accepts_checksums(tmp_path: Path) -> None:
    for name in ("coder-linux-amd64", "coder-linux-amd64.cdx.json", "coder-linux-amd64.stamp", "other"):
        (tmp_path / name).write_text(name)
    sbom.write_sums(tmp_path)
    done = subprocess.run(["sha256sum", "-c", sbom.SUMS], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["coder-linux-amd64: OK", "coder-linux-amd64.cdx.json: OK"]
    (tmp_path / "coder-linux-amd64").write_text("changed")
    assert subprocess.run(["sha256sum", "-c", "--status", sbom.SUMS], cwd=tmp_path, check=False).returncode == 1
