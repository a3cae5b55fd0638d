"""The container image as an OCI image layout in one tar file, made without a daemon or a registry.

`skopeo copy --all oci-archive:coder-image-<version>.tar docker://…` publishes it. The layer of a processor is a bare
root: the program, certificates and a user, no shell, no Debian, no Terraform. It serves deployments that have a
PostgreSQL and external provisioners; --image takes complete images that were built elsewhere. Layers are not
compressed, since the program is; so their bytes do not depend on a compressor's version.

Source: OCI image specification 1.1 (image-layout.md, manifest.md, config.md).
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from release import archive
from release.plan import LICENSE, PACKAGE, PACKAGED, SUMMARY, Plan, write

USER = 1000
HOME = "/home/coder"
MANIFEST, INDEX = "application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.index.v1+json"
CONFIG, LAYER = "application/vnd.oci.image.config.v1+json", "application/vnd.oci.image.layer.v1.tar"
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
_FOLDERS = ("etc", "etc/ssl", "etc/ssl/certs", "home", "opt", "usr", "usr/bin")
_OWNED = ("home/coder", "home/coder/.cache", "home/coder/.config")


def build(plan: Plan) -> Path:
    """Write the image of every processor with a program and return its path."""
    blobs: dict[str, bytes] = {}
    manifests = []
    for processor in PACKAGED:
        program = plan.programs.get(f"coder-linux-{processor}")
        if program is None:
            continue
        layer_reference = add(blobs, LAYER, bare_root(program.read_bytes(), plan.time))
        config = add(blobs, CONFIG, document(configuration(plan, processor, layer_reference["digest"])))
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer_reference]}
        platform = {"architecture": processor, "os": "linux"}
        manifests.append({**add(blobs, MANIFEST, document(manifest)), "platform": platform})
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}
    reference = {
        **add(blobs, INDEX, document(index)),
        "annotations": {"org.opencontainers.image.ref.name": plan.version},
    }
    entries = [archive.folder("blobs"), archive.folder("blobs/sha256")]
    entries += [archive.entry(f"blobs/sha256/{name}", data) for name, data in blobs.items()]
    entries.append(archive.entry("oci-layout", document({"imageLayoutVersion": "1.0.0"})))
    entries.append(
        archive.entry("index.json", document({"schemaVersion": 2, "mediaType": INDEX, "manifests": [reference]}))
    )
    return write(plan.out / f"coder-image-{plan.version}.tar", archive.tar(entries, plan.time))


def configuration(plan: Plan, processor: str, layer: str) -> dict[str, Any]:
    """Return the image's configuration, with the settings of build/docker/Dockerfile."""
    created = datetime.fromtimestamp(plan.time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    settings = {
        "HOME": HOME,
        "PATH": "/opt:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "CODER_HTTP_ADDRESS": "0.0.0.0:3000",
        "CODER_CONFIG_DIR": f"{HOME}/.config/coder",
        "CODER_CACHE_DIRECTORY": f"{HOME}/.cache/coder",
    }
    labels = {
        "org.opencontainers.image.title": PACKAGE,
        "org.opencontainers.image.description": SUMMARY,
        "org.opencontainers.image.version": plan.version,
        "org.opencontainers.image.revision": plan.commit,
        "org.opencontainers.image.licenses": LICENSE,
    }
    return {
        "created": created,
        "architecture": processor,
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "ExposedPorts": {"3000/tcp": {}},
            "Env": [f"{name}={value}" for name, value in settings.items()],
            "Entrypoint": ["/opt/coder"],
            "Cmd": ["server"],
            "Volumes": {f"{HOME}/.config": {}},
            "WorkingDir": HOME,
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [layer]},
        "history": [{"created": created, "created_by": "scripts/release"}],
    }


def bare_root(program: bytes, time: int) -> bytes:
    """Return a layer with the program and what it reads: it brings its C library, but the built-in PostgreSQL requires
    the system's."""
    import certifi

    entries = [archive.folder(name) for name in _FOLDERS]
    entries += [archive.folder(name, 0o700, owner=USER) for name in _OWNED]
    entries += [archive.folder("tmp", 0o1777), archive.link("usr/bin/coder", "/opt/coder")]
    entries.append(archive.entry("opt/coder", program, 0o755))
    entries.append(archive.entry("etc/passwd", f"root:x:0:0::/:\ncoder:x:{USER}:{USER}::{HOME}:\n".encode()))
    entries.append(archive.entry("etc/group", f"root:x:0:\ncoder:x:{USER}:\n".encode()))
    entries.append(archive.entry(CERTIFICATES, Path(certifi.where()).read_bytes()))
    return archive.tar(entries, time)


def document(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def add(blobs: dict[str, bytes], media_type: str, data: bytes) -> dict[str, Any]:
    """Add a blob and return its descriptor."""
    name = hashlib.sha256(data).hexdigest()
    blobs[name] = data
    return {"mediaType": media_type, "digest": f"sha256:{name}", "size": len(data)}
