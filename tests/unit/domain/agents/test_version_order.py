"""Order of versions."""

from __future__ import annotations

from itertools import pairwise

import pytest

from coder.domain.agents.version_order import canonical, is_newer, is_version

IN_ORDER = (
    "v2.9.9",
    "v2.34.0-1",
    "v2.34.0-alpha",
    "v2.34.0-alpha.1",
    "v2.34.0-alpha.beta",
    "v2.34.0-beta.2",
    "v2.34.0-beta.11",
    "v2.34.0",
    "v2.34.1",
    "v2.35.0-devel",
    "v2.35.0",
    "v10.0.0",
)
"""Pre-releases in the order of the specification's rule 11."""


def test_versions_are_ordered() -> None:
    for position, version in enumerate(IN_ORDER):
        assert not is_newer(version, version)
        assert all(is_newer(version, older) and not is_newer(older, version) for older in IN_ORDER[:position])
    assert all(not is_newer(older, newer) for older, newer in pairwise(IN_ORDER))


def test_build_metadata_is_ignored() -> None:
    assert not is_newer("v2.34.0+abc", "v2.34.0+aaa") and not is_newer("v2.34.0+abc", "v2.34.0")
    assert is_newer("2.35.0", "v2.34.0")


@pytest.mark.parametrize(
    "odd",
    ["", "devel", "v2", "v2.34", "v2.34.0.1", "v2.34.0-", "v-1.0.0", "v" + "9" * 5000, "٣.1.2"]
    + [f"v9.0.0{sign}{'9' * 5000}" for sign in ("-", "-a.", "+")],
)
def test_invalid_version_is_never_newer(odd: str) -> None:
    assert not is_newer(odd, "v2.34.0")
    assert not is_newer("v2.34.0", odd)
    assert not is_version(odd) and canonical(odd) == odd


@pytest.mark.parametrize("version", [*IN_ORDER, "v2.34.0+abc"])
def test_leading_v_may_be_omitted(version: str) -> None:
    bare = version.removeprefix("v")
    assert is_version(version) and is_version(bare)
    assert canonical(version) == canonical(bare) == version
    assert not is_newer(version, bare) and not is_newer(bare, version)
