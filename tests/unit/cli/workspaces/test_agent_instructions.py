"""The lines that attach a machine, for the platforms that the flags select."""

from __future__ import annotations

import pytest

from coder.base.errors import CoderError
from coder.cli.workspaces.external_workspaces import _address, _choose
from coder.domain.agents.init_scripts import PLATFORMS, attach_command

LINUX = ("linux", "amd64")


@pytest.mark.parametrize(
    ("system", "arch", "template", "expected"),
    [
        ("windows", "", LINUX, [("windows", "amd64")]),
        ("darwin", "arm64", LINUX, [("darwin", "arm64")]),
        ("", "armv7", LINUX, [("linux", "armv7")]),
        ("darwin", "", ("linux", "armv7"), [("darwin", "amd64")]),
        ("linux", "all", LINUX, [each for each in PLATFORMS if each[0] == "linux"]),
        ("all", "arm64", LINUX, [("linux", "arm64"), ("darwin", "arm64"), ("windows", "arm64")]),
        ("all", "", LINUX, list(PLATFORMS)),
        ("", "all", LINUX, list(PLATFORMS)),
    ],
)
def test_flags_choose_platforms(
    system: str, arch: str, template: tuple[str, str], expected: list[tuple[str, str]]
) -> None:
    assert _choose(system, arch, template) == expected


@pytest.mark.parametrize(("system", "arch"), [("windows", "armv7"), ("plan9", ""), ("linux", "mips"), ("all", "mips")])
def test_unknown_platform_lists_known(system: str, arch: str) -> None:
    with pytest.raises(CoderError, match="no agent exists") as error:
        _choose(system, arch, LINUX)
    assert error.value.hint is not None and "windows/arm64" in error.value.hint


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("url", ["https://x.example", "http://10.0.0.1:3000"])
def test_address_is_found_in_command(platform: tuple[str, str], url: str) -> None:
    assert _address(attach_command(url, *platform, "T")) == url


def test_command_without_address_is_an_error() -> None:
    with pytest.raises(CoderError, match="has no address"):
        _address("run this")
