"""Terraform and the providers of templates, collected on a machine with network for machines without.

    DIR/terraform/<platform>/terraform        one program a platform
    DIR/providers/…                           a filesystem mirror, as `terraform providers mirror` lays it out
    DIR/terraform.rc                          file for TF_CLI_CONFIG_FILE there: names that mirror alone

Each template is collected separately: two templates may pin different releases of one provider. `coder/coder` is not
collected, the daemon serves it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import trio

from coder.base.errors import CoderError
from coder.base.json_types import Json
from coder.domain.hcl.json_syntax import native_syntax_untrusted
from coder.domain.hcl.lexer import HclError
from coder.domain.hcl.parser import parse_file_untrusted
from coder.domain.hcl.tree import File
from coder.provisionerd.terraform.download import VERSION, fetch_program
from coder.provisionerd.terraform.environment import inherited
from coder.provisionerd.terraform.provider.provider import platform_name
from coder.provisionerd.terraform.template import constant

_SERVED = frozenset({"coder/coder", "registry.terraform.io/coder/coder"})
_PART_OF_TERRAFORM = frozenset({"terraform"})
_LOCK_FILE = ".terraform.lock.hcl"


@dataclass(frozen=True, slots=True)
class Bundle:
    """Collected terraform programs and providers."""

    platforms: tuple[str, ...]
    providers: tuple[str, ...]
    "Providers as `host/namespace/name version`, sorted."
    configuration: Path


def required_providers(folder: Path) -> dict[str, str]:
    """Return source -> version constraint of all providers that a template and its local modules name. Raises
    CoderError `template`."""
    constraints: dict[str, list[str]] = {}
    for module in sorted({path.parent for path in _sources(folder)}):
        files = [_parsed(path) for path in _sources(folder) if path.parent == module]
        declared = _declared(files)
        used = {name: {"source": f"hashicorp/{name}"} for name in _used(files) - declared.keys() - {"coder"}}
        for required in (*declared.values(), *used.values()):
            source, version = required.get("source", ""), required.get("version", "")
            if source and source not in _SERVED:
                constraints.setdefault(source, [])
                constraints[source] += [version] * (bool(version) and version not in constraints[source])
    return {source: ", ".join(versions) for source, versions in sorted(constraints.items())}


def _sources(folder: Path) -> list[Path]:
    providers = [path for pattern in ("*.tf", "*.tf.json") for path in folder.rglob(pattern)]
    return sorted(path for path in providers if path.is_file() and ".terraform" not in path.relative_to(folder).parts)


def _parsed(path: Path) -> File:
    try:
        text = path.read_text()
        return parse_file_untrusted(native_syntax_untrusted(text) if path.suffix == ".json" else text, path.name)
    except (OSError, UnicodeDecodeError, HclError) as error:
        raise CoderError("template", f"{path} cannot be read", "Name a folder with a template.") from error


def _declared(files: Sequence[File]) -> dict[str, dict[str, str]]:
    providers: dict[str, dict[str, str]] = {}
    blocks = [block for file in files for block in file.body.blocks if block.type == "terraform"]
    for inner in (inner for block in blocks for inner in block.body.blocks if inner.type == "required_providers"):
        for name, expression in inner.body.attributes.items():
            value: Json = constant(expression)
            entry = value if isinstance(value, dict) else {"version": str(value)}
            providers[name] = {"source": f"hashicorp/{name}"} | {key: str(text) for key, text in entry.items()}
    return providers


def _used(files: Sequence[File]) -> set[str]:
    """Return the local names of providers that resources, data and configurations use."""
    blocks = [block for file in files for block in file.body.blocks if block.labels]
    names = {block.labels[0].partition("_")[0] for block in blocks if block.type in {"resource", "data"}}
    return (names | {block.labels[0] for block in blocks if block.type == "provider"}) - _PART_OF_TERRAFORM


async def collect(
    target: Path,
    templates: Sequence[Path],
    *,
    platforms: Sequence[str],
    releases: str,
    installed_at: str,
    environment: Mapping[str, str],
) -> Bundle:
    """Fill `target`. Raises CoderError `bundle`, `template`, `terraform_download`, with the reason."""
    required = [(folder, required_providers(folder)) for folder in templates]
    here = platform_name()
    for platform in dict.fromkeys((here, *platforms)):
        program = target / "terraform" / platform / ("terraform.exe" if platform.startswith("windows") else "terraform")
        if not program.exists():
            await fetch_program(releases, VERSION, platform, program)
    terraform = target / "terraform" / here / "terraform"
    for folder, providers in required:
        if providers:
            await trio.to_thread.run_sync(_mirror, terraform, folder, providers, target, platforms, environment)
    if here not in platforms:
        shutil.rmtree(terraform.parent)
    configuration = target / "terraform.rc"
    configuration.write_text(configuration_text(f"{installed_at.rstrip('/')}/providers"))
    return Bundle(tuple(platforms), tuple(sorted(_collected(target / "providers"))), configuration)


def configuration_text(mirror: str) -> str:
    """Return a CLI configuration without `direct`: on an offline machine a registry request takes minutes to fail."""
    return f"provider_installation {{\n  filesystem_mirror {{\n    path = {json.dumps(mirror)}\n  }}\n}}\n"


def _mirror(
    terraform: Path,
    folder: Path,
    providers: Mapping[str, str],
    target: Path,
    platforms: Sequence[str],
    environment: Mapping[str, str],
) -> None:
    """Let terraform itself collect the providers: it supports registries, checks signatures, and respects a lock
    file."""
    entries = {
        f"p{number}": {"source": source} | ({"version": version} if version else {})
        for number, (source, version) in enumerate(providers.items())
    }
    with tempfile.TemporaryDirectory(prefix="coder-bundle-") as name:
        work = Path(name)
        (work / "main.tf.json").write_text(json.dumps({"terraform": {"required_providers": entries}}))
        if (folder / _LOCK_FILE).is_file():
            shutil.copyfile(folder / _LOCK_FILE, work / _LOCK_FILE)
        command = [str(terraform.resolve()), "providers", "mirror", *(f"-platform={word}" for word in platforms)]
        command.append(str((target / "providers").resolve()))
        done = subprocess.run(
            command, cwd=work, env=inherited(environment), capture_output=True, text=True, check=False
        )
    if done.returncode:
        output = " ".join(done.stderr.split())[-600:]
        raise CoderError(
            "bundle", f"providers of {folder} could not be collected: {output}", "Is the registry reachable?"
        )


def _collected(mirror: Path) -> set[str]:
    """Return the collected providers from the archives' names:
    terraform-provider-<name>_<version>_<system>_<processor>.zip."""
    return {
        f"{path.parent.relative_to(mirror).as_posix()} {path.name.split('_')[-3]}"
        for path in mirror.rglob("terraform-provider-*.zip")
    }
