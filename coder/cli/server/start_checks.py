"""Checks of the machine before a server or a provisioner starts: what fails here would fail later, without a reason."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from coder.base.errors import CoderError

if TYPE_CHECKING:
    from coder.coderd.config.settings import ServerConfig

DEFAULT_TERRAFORM = "terraform"
"""Name that is looked up, and downloaded if it is missing; any other value names an existing program."""


def check_folder(flag: str, folder: Path) -> None:
    """Create the directory of an option. Raises CoderError `bad_option` if it cannot be written."""
    folder = folder.expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CoderError(
            "bad_option",
            f"--{flag}: the directory {folder} cannot be created: {error.strerror}",
            "Choose a directory that this user may write, or create it.",
        ) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise CoderError(
            "bad_option",
            f"--{flag}: this user may not write the directory {folder}",
            "Choose another directory, or change its owner.",
        )


def check_terraform(name: str, environment: Mapping[str, str], *, can_download: bool) -> None:
    """Raise CoderError `terraform_missing` unless the named Terraform exists or can be downloaded later."""
    path = environment.get("PATH")
    if shutil.which(name, path=path) or (
        name == DEFAULT_TERRAFORM and (can_download or shutil.which("tofu", path=path))
    ):
        return
    if name == DEFAULT_TERRAFORM:
        message = "there is no terraform on PATH, and downloads are off (CODER_PROVISIONER_TERRAFORM_RELEASES_URL)"
    else:
        message = f"--terraform-path: {name} is not an executable program"
    raise CoderError(
        "terraform_missing", message, "Install Terraform or OpenTofu, or name the program with --terraform-path."
    )


def with_stun_port(config: ServerConfig) -> ServerConfig:
    """Return the settings with a free UDP port in place of port 0 of the embedded STUN server.

    Chosen before the processes start: one of them listens on it, and the others tell clients.
    """
    host, _, port = config.stun_address.rpartition(":")
    if not config.stun_address or int(port):
        return config
    name = host.strip("[]")
    family = socket.AF_INET if name and ":" not in name else socket.AF_INET6
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as chosen:
        chosen.bind((name, 0))
        return replace(config, stun_address=f"{host}:{chosen.getsockname()[1]}")
    return config
