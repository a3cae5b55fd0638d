"""Checks of the machine before a server or a provisioner starts: what fails here would fail later, without a reason."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from coder.base.errors import CoderError

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
