"""The facts of an image, from the Dockerfile and from an OCI archive, in one form."""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path
from typing import Any


def dockerfile_facts(path: Path) -> dict[str, Any]:
    """The configuration that the last stage of a Dockerfile describes, with the keys of an OCI image configuration."""
    text = re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    stages = re.split(r"^FROM ", text, flags=re.MULTILINE)
    facts: dict[str, Any] = {"Env": [], "Labels": {}, "ExposedPorts": {}, "Volumes": {}, "User": "", "WorkingDir": ""}
    for line in stages[-1].splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "ENV":
            facts["Env"] += rest.split()
        elif word == "LABEL":
            facts["Labels"] |= dict(re.findall(r'(\S+)="([^"]*)"', rest))
        elif word == "EXPOSE":
            facts["ExposedPorts"] |= {f"{port}/tcp": {} for port in rest.split()}
        elif word == "VOLUME":
            facts["Volumes"] |= {path: {} for path in json.loads(rest)}
        elif word in {"ENTRYPOINT", "CMD"}:
            facts[{"ENTRYPOINT": "Entrypoint", "CMD": "Cmd"}[word]] = json.loads(rest)
        elif word in {"USER", "WORKDIR"}:
            facts[{"USER": "User", "WORKDIR": "WorkingDir"}[word]] = rest
    return facts


def archive_facts(archive: Path) -> tuple[dict[str, Any], list[set[str]]]:
    """The image configuration of an OCI archive, and the paths of each layer."""
    with tarfile.open(archive) as file:

        def blob(digest: str) -> Any:
            member = file.extractfile(f"blobs/{digest.replace(':', '/')}")
            assert member is not None
            return member

        index = file.extractfile("index.json")
        assert index is not None
        manifest = json.load(blob(json.load(index)["manifests"][0]["digest"]))
        layers = []
        for layer in manifest["layers"]:
            with tarfile.open(fileobj=blob(layer["digest"])) as content:
                layers.append({name.removeprefix("./").strip("/") for name in content.getnames()})
        configuration: dict[str, Any] = json.load(blob(manifest["config"]["digest"]))
        return configuration, layers
