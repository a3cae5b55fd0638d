"""Search for terraform and check of its version."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import trio

from coder.base.errors import CoderError
from coder.provisionerd.terraform.download import DownloadFailed

MINIMUM = (1, 1, 0)
"First release whose -json output and plans are supported."
_JSON_INIT = (1, 9, 0)
_GRAPH_TYPE = (1, 7, 0)
_TIMEOUT = 30.0

Version = tuple[int, int, int]


class TerraformMissing(CoderError):  # noqa: N818 - names the situation
    """No usable terraform exists. The message names the remedy."""

    def __init__(self, message: str) -> None:
        super().__init__("terraform_missing", message)


@dataclass(frozen=True, slots=True)
class TerraformBinary:
    path: str
    version: Version

    @property
    def init_speaks_json(self) -> bool:
        return self.version >= _JSON_INIT

    @property
    def graph_has_type(self) -> bool:
        return self.version >= _GRAPH_TYPE


async def find_binary(
    name: str, environment: Mapping[str, str], fetch: Callable[[], Awaitable[Path]] | None = None
) -> TerraformBinary:
    """Find terraform (or OpenTofu) and its version. Raises TerraformMissing.

    `fetch` downloads one when the plain name is not on PATH.
    """
    minimum = ".".join(map(str, MINIMUM))
    search = environment.get("PATH")
    path = shutil.which(name, path=search) or (shutil.which("tofu", path=search) if name == "terraform" else None)
    download_error = ""
    if path is None and name == "terraform" and fetch is not None:
        try:
            path = str(await fetch())
        except DownloadFailed as error:
            download_error = f" It could not be downloaded either: {error.message}."
    if path is None:
        raise TerraformMissing(
            f"terraform was not found ({name!r} is not an executable on PATH).{download_error} Install Terraform "
            f"{minimum} or newer from https://developer.hashicorp.com/terraform/install, or OpenTofu, on "
            "the machine of the provisioner."
        )
    try:
        with trio.fail_after(_TIMEOUT):
            process = await trio.run_process(
                [path, "version", "-json"],
                env=dict(environment),
                capture_stdout=True,
                stderr=subprocess.DEVNULL,
                cwd=Path(path).parent,
            )
        text = str(json.loads(process.stdout)["terraform_version"])
    except OSError as error:
        raise TerraformMissing(f"{path} could not be started: {error.strerror or error}.") from error
    except (subprocess.CalledProcessError, ValueError, KeyError, TypeError, trio.TooSlowError) as error:
        raise TerraformMissing(f"{path} does not answer `version -json` like terraform does.") from error
    version = parse_version(text)
    if version < MINIMUM:
        raise TerraformMissing(
            f"{path} is version {text}, which is too old. Install Terraform {minimum} or newer on the machine of the "
            "provisioner."
        )
    return TerraformBinary(path, version)


def parse_version(text: str) -> Version:
    """Parse a version: `1.11.4-beta1` -> (1, 11, 4); parts that are not numbers count as 0."""
    parts = [int(part) if part.isdigit() else 0 for part in text.partition("-")[0].partition("+")[0].split(".")]
    major, minor, patch = [*parts, 0, 0, 0][:3]
    return major, minor, patch
