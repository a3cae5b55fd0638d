"""Filesystem mirror that supplies our provider to a stock terraform in place of a registry."""

from __future__ import annotations

import shlex
import stat
from collections.abc import Sequence
from pathlib import Path

from coder.base.atomic_file import read_lossless, write_atomically
from coder.base.errors import CoderError
from coder.provisionerd.terraform.provider.catalog import PROVIDER_VERSION

_HOSTS = ("registry.terraform.io", "registry.opentofu.org")
"Registries: OpenTofu looks for the same provider under its own registry's name."


def write_mirror(folder: Path, command: Sequence[str], platform: str, versions: Sequence[str] = ()) -> Path:
    """Write the mirror; return a CLI configuration file that uses it.

    `command` starts the plugin; `platform` is e.g. linux_amd64. A template that pins another version than ours finds it
    when that version is in `versions`. Raises CoderError `mirror`.
    """
    try:
        for host in _HOSTS:
            for version in dict.fromkeys((PROVIDER_VERSION, *versions)):
                # One tiny file per version: terraform hashes the whole directory at every plan.
                target = folder.resolve() / host / "coder" / "coder" / version / platform
                target.mkdir(parents=True, exist_ok=True)
                wrapper = target / f"terraform-provider-coder_v{version}"
                _keep(wrapper, f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', 0o755)
        configuration = folder.resolve() / "terraform.rc"
        _keep(configuration, _configuration(folder.resolve()), 0o644)
    except OSError as error:
        raise CoderError("mirror", f"cannot write a mirror to {folder}", "Choose a directory of your own.") from error
    return configuration


def _keep(path: Path, text: str, mode: int) -> None:
    """Write a file unless it is there: other daemons use the same folder, and a full disk must not leave it empty."""
    if not path.exists() or read_lossless(path) != text or stat.S_IMODE(path.stat().st_mode) != mode:
        write_atomically(path, text, mode=mode)


def _configuration(folder: Path) -> str:
    # Without the exclusion terraform would still ask the registry about coder/coder, and fail where there is none.
    names = ", ".join(f'"{host}/coder/coder"' for host in _HOSTS)
    return (
        "provider_installation {\n"
        f'  filesystem_mirror {{\n    path    = "{folder}"\n    include = [{names}]\n  }}\n'
        f"  direct {{\n    exclude = [{names}]\n  }}\n"
        "}\n"
    )
