"""CycloneDX bill of materials of a built program, and checksums of all build results.

The components come from PyInstaller's folder, not from the list of requirements, so that excluded packages are not
listed. The same input gives the same bytes: no times, and the serial number is a hash of the content.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import ssl
import subprocess
import sys
import uuid
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePosixPath
from typing import Any

import modules

ROOT = Path(__file__).resolve().parent.parent
DASHBOARD = ROOT / "coder/dashboard"
SUMS = "SHA256SUMS"
Component = dict[str, Any]
NATIVE = frozenset({".so", ".pyd", ".dylib", ".dll"})
_OPENSSL = re.compile(rb"OpenSSL (\d+\.\d+\.\d+) +\d+ \w+ 20\d\d")
_IMPORT = re.compile(r"""(?:from|import|import\()\s*["']([^."'][^"']*)["']""")


def describe(folder: Path, name: str, version: str, *, dashboard: bool, site: Path | None = None) -> dict[str, Any]:
    """Return the document for a program collected in `folder`, of packages installed here or in `site`."""
    names = module_names(folder)
    installed = distributions(path=[str(site)]) if site else distributions()
    listed = [d for d in installed if d.metadata["Name"] != "coder"]
    parts = [
        python_itself(),
        *(of_distribution(distribution) for distribution in listed if is_inside(distribution, names, folder)),
    ]
    parts += loose_libraries(folder, listed)
    parts += linked_openssl(folder)
    parts += of_packages(DASHBOARD) if dashboard else []
    return document(name, version, parts)


def document(name: str, version: str, parts: Iterable[Component]) -> dict[str, Any]:
    """Return the document of a program with these components."""
    unique = {part["bom-ref"]: part for part in parts}
    components = [unique[reference] for reference in sorted(unique)]
    content = json.dumps(components, sort_keys=True)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{name} {version} {content}')}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": name,
                "name": name,
                "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": components,
        "dependencies": [{"ref": name, "dependsOn": [part["bom-ref"] for part in components]}],
    }


def module_names(folder: Path) -> set[str]:
    """Return every Python module of a collected program, compiled extensions included."""
    internal = folder / "_internal"
    names = {
        name
        for file_name in ("modules.bin", "modules-full.bin")
        if (internal / file_name).exists()
        for name in modules.unpacked((internal / file_name).read_bytes())
    }
    for path in internal.rglob("*.so"):
        names.add(module_of(path.relative_to(internal).as_posix()))
    return names


def module_of(path: str) -> str:
    """Return the module of an installed package's file, or a text that is not a module's name."""
    pure_path = PurePosixPath(path)
    stem = pure_path.name.partition(".")[0]
    parts = pure_path.parent.parts if stem == "__init__" else (*pure_path.parent.parts, stem)
    return ".".join(parts)


def is_inside(distribution: Distribution, names: set[str], folder: Path) -> bool:
    """Return whether any module or data file of an installed package was collected."""
    for path in distribution.files or ():
        if path.suffix in {".py", ".so"}:
            if module_of(path.as_posix()) in names:
                return True
        elif is_data(path) and (folder / "_internal" / path).is_file():
            return True
    return False


def is_data(path: PurePosixPath) -> bool:
    return len(path.parts) > 2 and not path.parts[0].endswith(".dist-info") and ".." not in path.parts


def of_distribution(distribution: Distribution) -> Component:
    name, version = distribution.metadata["Name"], distribution.version
    component = component_of("library", name, version, f"pkg:pypi/{name.lower().replace('_', '-')}@{version}")
    fields: Any = distribution.metadata  # typeshed's protocol has no `get`
    expression = fields.get("License-Expression")
    if expression:
        component["licenses"] = [{"expression": expression}]
    return component


def python_itself() -> Component:
    version = platform.python_version()
    component = component_of("platform", "python", version, f"pkg:generic/python@{version}")
    component["licenses"] = [{"license": {"id": "PSF-2.0"}}]
    return component


def loose_libraries(folder: Path, listed: Iterable[Distribution]) -> Iterator[Component]:
    """Return the shared libraries of the build machine (OpenSSL, the C library) with their packages."""
    internal = folder / "_internal"
    library_names = {path.name for distribution in listed for path in distribution.files or () if ".so" in path.name}
    for path in sorted(internal.rglob("*.so*")):
        inside = path.relative_to(internal).as_posix()
        # Python modules belong to Python or to a package.
        if path.is_symlink() or path.name in library_names or path.name.endswith(".so"):
            continue
        package, version = debian_package(path.name)
        purl = f"pkg:deb/debian/{package}@{version}" if package else ""
        built = built_here(path.name)
        # Query dpkg by name: its library of that name can differ from the one this Python uses.
        if built and version.partition("-")[0] != built[1]:
            version = built[1]
            purl = f"pkg:generic/{built[0]}@{version}"
        component = component_of("library", path.name, version, purl, reference=f"file:{inside}")
        component["hashes"] = [{"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}]
        yield component


def linked_openssl(folder: Path) -> Iterator[Component]:
    """Return the versions of OpenSSL inside native modules, such as that of cryptography's wheel, which no package
    manager lists. OpenSSL's own libraries are components already."""
    for path in sorted(folder.rglob("*")):
        if path.suffix not in NATIVE or path.is_symlink() or path.name.startswith(("libssl", "libcrypto")):
            continue
        inside = path.relative_to(folder).as_posix().removeprefix("_internal/")
        for version in sorted(openssl_versions([path])):
            reference = f"file:{inside}#openssl-{version}"
            yield component_of("library", "openssl", version, f"pkg:generic/openssl@{version}", reference=reference)


def openssl_versions(paths: Iterable[Path]) -> set[str]:
    """Return the versions of OpenSSL that files contain."""
    return {match.decode() for path in paths for match in _OPENSSL.findall(path.read_bytes())}


def built_here(library: str) -> tuple[str, str] | None:
    """Return name and version of libraries compiled together with this Python (root-python.sh), which are in no
    package."""
    stem = library.partition(".so")[0]
    if stem in {"libssl", "libcrypto"}:
        return "openssl", ssl.OPENSSL_VERSION.split()[1]
    if stem == f"libpython{platform.python_version().rpartition('.')[0]}":
        return "python", platform.python_version()
    return None


def debian_package(library: str) -> tuple[str, str]:
    """Return name and version of the package of this machine's library; empty without dpkg."""
    try:
        owner = subprocess.run(["dpkg", "-S", f"*/{library}"], capture_output=True, text=True, check=False).stdout
        package = owner.partition(":")[0].splitlines()[0] if owner else ""
        if not package:
            return "", ""
        query = ["dpkg-query", "-W", "-f=${Version}\n", package]
        version = subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError):
        return "", ""
    return package, version


_DRAWINGS = "@iconify-json/"
"""Icon sets that `scripts/dashboard_pictures.py` packs; no source imports them."""


def of_packages(dashboard: Path) -> list[Component]:
    """Return the libraries that the dashboard imports, with their dependencies, without build tools."""
    entries = json.loads((dashboard / "package-lock.json").read_text())["packages"]
    components: dict[str, Component] = {}
    declared = set(entries[""]["dependencies"])
    drawings = {name for name in declared if name.startswith(_DRAWINGS)}
    todo = [f"node_modules/{name}" for name in imported_packages(dashboard / "src", declared) | drawings]
    while todo:
        folder = todo.pop()
        if folder in components:
            continue
        components[folder] = of_package(folder, entries[folder])
        todo += filter(None, (resolved(folder, name, entries) for name in entries[folder].get("dependencies", ())))
    return list(components.values())


def imported_packages(sources: Path, declared: set[str]) -> set[str]:
    files = [
        path for path in sources.rglob("*") if path.suffix in {".ts", ".tsx", ".css"} and ".test." not in path.name
    ]
    words = {word for path in files for word in _IMPORT.findall(path.read_text())}
    return {name for name in declared if any(word == name or word.startswith(f"{name}/") for word in words)}


def resolved(folder: str, name: str, entries: dict[str, Any]) -> str:
    """Find a package as Node does: next to the importer, then in parent folders. Empty for a missing optional one."""
    while True:
        candidate = f"{folder}/node_modules/{name}" if folder else f"node_modules/{name}"
        if candidate in entries:
            return candidate
        if not folder:
            return ""
        folder = folder.rpartition("node_modules/")[0].rstrip("/")


def of_package(folder: str, entry: dict[str, Any]) -> Component:
    name = folder.rpartition("node_modules/")[2]
    purl = f"pkg:npm/{name.replace('@', '%40')}@{entry['version']}"
    component = component_of("library", name, entry["version"], purl)
    if isinstance(entry.get("license"), str):
        component["licenses"] = [{"expression": entry["license"]}]
    return component


def component_of(kind: str, name: str, version: str, purl: str, *, reference: str = "") -> Component:
    component = {"type": kind, "bom-ref": reference or purl, "name": name, "version": version or "unknown"}
    return component | ({"purl": purl} if purl else {})


def write(target: Path, document: dict[str, Any]) -> None:
    partial = target.with_name(f".{target.name}.new")
    partial.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    partial.replace(target)


def write_sums(folder: Path) -> None:
    """Write `SHA256SUMS` of the build results, in the format of `sha256sum -c`."""
    files = sorted(path for path in folder.glob("coder-*") if path.is_file() and path.suffix != ".stamp")
    lines = []
    for path in files:
        with path.open("rb") as file:
            lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.name}\n")
    partial = folder / f".{SUMS}.new"
    partial.write_text("".join(lines))
    partial.replace(folder / SUMS)


def main() -> int:
    """Print the document of a collected program: `sbom.py FOLDER`."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    json.dump(describe(Path(sys.argv[1]), "coder", "0", dashboard=True), sys.stdout, indent=1)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
